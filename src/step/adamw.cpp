// State is in vectors parallel to the parameters; each update picks those that have a gradient.
#include "step/adamw.h"

#include <ATen/ATen.h>

namespace gradstep {

AdamW::AdamW(std::vector<TrainedParameter> parameters, const OptimizerOptions& options)
    : Optimizer(std::move(parameters)),
      beta1_(options.beta1),
      beta2_(options.beta2),
      eps_(options.eps),
      buckets_(param_buckets(trained())) {
  for (const TrainedParameter& parameter : trained()) {
    means_.push_back(at::zeros_like(parameter.tensor, at::MemoryFormat::Preserve));
    squares_.push_back(at::zeros_like(parameter.tensor, at::MemoryFormat::Preserve));
  }
  if (trained().empty()) return;
  steps_ = at::zeros({static_cast<int64_t>(trained().size())}, trained().front().tensor.options());
  step_views_ = steps_.unbind();
  one_ = at::ones({}, steps_.options());
}

void AdamW::step(double lr, const at::Tensor& found_inf) {
  const at::NoGradGuard no_grad;
  // The kernel expects the step to be counted already, and leaves it to the caller to take back a skipped
  // one.
  count_step(one_, 1);
  for (const ParamBucket& bucket : buckets_) step_bucket(bucket, lr, found_inf);
  count_step(found_inf, -1);
}

void AdamW::count_step(const at::Tensor& amount, int64_t sign) {
  if (!steps_.defined()) return;
  const auto has_grad = [](const auto& named) { return named.second.grad().defined(); };
  if (std::all_of(parameters().begin(), parameters().end(), has_grad)) {
    steps_.add_(amount, sign);
    return;
  }
  for (size_t i = 0; i < parameters().size(); ++i) {
    if (has_grad(parameters()[i])) step_views_[i].add_(amount, sign);
  }
}

void AdamW::step_bucket(const ParamBucket& bucket, double lr, const at::Tensor& found_inf) {
  std::vector<at::Tensor> params, grads, means, squares, steps;
  for (const size_t i : bucket.members) {
    const at::Tensor& parameter = trained()[i].tensor;
    if (!parameter.grad().defined()) continue;
    params.push_back(parameter);
    grads.push_back(parameter.grad());
    means.push_back(means_[i]);
    squares.push_back(squares_[i]);
    steps.push_back(step_views_[i]);
  }
  if (params.empty()) return;
  at::_fused_adamw_(params, grads, means, squares, /*max_exp_avg_sqs=*/{}, steps, lr * bucket.lr_factor,
                    beta1_, beta2_, bucket.weight_decay, eps_, /*amsgrad=*/false, /*maximize=*/false,
                    /*grad_scale=*/{}, found_inf);
}

NamedTensors AdamW::state() const {
  NamedTensors state;
  for (size_t i = 0; i < means_.size(); ++i) {
    const std::string& name = trained()[i].name;
    state.emplace_back(name + ".exp_avg", means_[i]);
    state.emplace_back(name + ".exp_avg_sq", squares_[i]);
    state.emplace_back(name + ".step", step_views_[i]);
  }
  return state;
}

}  // namespace gradstep
