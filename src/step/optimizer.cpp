// State lies in vectors parallel to the parameters; each update picks those that have a gradient.
#include "gradstep/step/optimizer.h"

#include <ATen/ATen.h>

namespace gradstep {

FusedOptimizer::FusedOptimizer(NamedTensors parameters, const OptimizerOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  const bool adamw = options_.kind == OptimizerKind::kAdamW;
  for (const auto& [name, parameter] : parameters_) {
    decay_.push_back(options_.decay_all || parameter.dim() > 1);
    if (adamw || options_.momentum != 0)
      first_moments_.push_back(at::zeros_like(parameter, at::MemoryFormat::Preserve));
    if (adamw) second_moments_.push_back(at::zeros_like(parameter, at::MemoryFormat::Preserve));
  }
  if (!adamw || parameters_.empty()) return;
  steps_ = at::zeros({static_cast<int64_t>(parameters_.size())}, parameters_.front().second.options());
  step_views_ = steps_.unbind();
  one_ = at::ones({}, steps_.options());
}

void FusedOptimizer::step(double lr, const at::Tensor& found_inf) {
  const at::NoGradGuard no_grad;
  // The AdamW kernel expects the step to be counted already, and leaves it to the caller to take back a
  // skipped one.
  count_step(one_, 1);
  step_group(/*decay=*/true, lr, found_inf);
  step_group(/*decay=*/false, lr, found_inf);
  count_step(found_inf, -1);
}

void FusedOptimizer::count_step(const at::Tensor& amount, int64_t sign) {
  if (!steps_.defined()) return;
  const auto has_grad = [](const auto& named) { return named.second.grad().defined(); };
  if (std::all_of(parameters_.begin(), parameters_.end(), has_grad)) {
    steps_.add_(amount, sign);
    return;
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (has_grad(parameters_[i])) step_views_[i].add_(amount, sign);
  }
}

void FusedOptimizer::step_group(bool decay, double lr, const at::Tensor& found_inf) {
  std::vector<at::Tensor> params, grads, first, second, steps;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& grad = parameters_[i].second.grad();
    if (decay_[i] != decay || !grad.defined()) continue;
    params.push_back(parameters_[i].second);
    grads.push_back(grad);
    if (!first_moments_.empty()) first.push_back(first_moments_[i]);
    if (second_moments_.empty()) continue;
    second.push_back(second_moments_[i]);
    steps.push_back(step_views_[i]);
  }
  if (params.empty()) return;
  const double weight_decay = decay ? options_.weight_decay : 0.0;
  if (options_.kind == OptimizerKind::kSgd) {
    // A buffer of zeros makes the first update equal to PyTorch's (momentum * 0 + grad), so no update is
    // special.
    at::_fused_sgd_(params, grads, first, weight_decay, options_.momentum, lr, /*dampening=*/0.0,
                    options_.nesterov, /*maximize=*/false,
                    /*is_first_step=*/false, /*grad_scale=*/{}, found_inf);
    return;
  }
  at::_fused_adamw_(params, grads, first, second, /*max_exp_avg_sqs=*/{}, steps, lr, options_.beta1,
                    options_.beta2, weight_decay, options_.eps, /*amsgrad=*/false, /*maximize=*/false,
                    /*grad_scale=*/{}, found_inf);
}

NamedTensors FusedOptimizer::state() const {
  NamedTensors state;
  const bool adamw = options_.kind == OptimizerKind::kAdamW;
  for (size_t i = 0; i < first_moments_.size(); ++i) {
    const std::string& name = parameters_[i].first;
    state.emplace_back(name + (adamw ? ".exp_avg" : ".momentum_buffer"), first_moments_[i]);
    if (!adamw) continue;
    state.emplace_back(name + ".exp_avg_sq", second_moments_[i]);
    state.emplace_back(name + ".step", step_views_[i]);
  }
  return state;
}

}  // namespace gradstep
