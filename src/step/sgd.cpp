// State is in a vector parallel to the parameters; each update picks those that have a gradient.
#include "step/sgd.h"

#include <ATen/ATen.h>

namespace gradstep {

Sgd::Sgd(std::vector<TrainedParameter> parameters, const OptimizerOptions& options)
    : Optimizer(std::move(parameters)),
      momentum_(options.momentum),
      nesterov_(options.nesterov),
      buckets_(param_buckets(trained())) {
  if (momentum_ == 0) return;
  for (const TrainedParameter& parameter : trained())
    momentum_buffers_.push_back(at::zeros_like(parameter.tensor, at::MemoryFormat::Preserve));
}

void Sgd::step(double lr, const at::Tensor& found_inf) {
  const at::NoGradGuard no_grad;
  for (const ParamBucket& bucket : buckets_) step_bucket(bucket, lr, found_inf);
}

void Sgd::step_bucket(const ParamBucket& bucket, double lr, const at::Tensor& found_inf) {
  std::vector<at::Tensor> params, grads, buffers;
  for (const size_t i : bucket.members) {
    const at::Tensor& parameter = trained()[i].tensor;
    if (!parameter.grad().defined()) continue;
    params.push_back(parameter);
    grads.push_back(parameter.grad());
    if (!momentum_buffers_.empty()) buffers.push_back(momentum_buffers_[i]);
  }
  if (params.empty()) return;
  // A buffer of zeros makes the first update equal to PyTorch's (momentum * 0 + grad), so no update is
  // special.
  at::_fused_sgd_(params, grads, buffers, bucket.weight_decay, momentum_, lr * bucket.lr_factor,
                  /*dampening=*/0.0, nesterov_, /*maximize=*/false,
                  /*is_first_step=*/false, /*grad_scale=*/{}, found_inf);
}

NamedTensors Sgd::state() const {
  NamedTensors state;
  for (size_t i = 0; i < momentum_buffers_.size(); ++i)
    state.emplace_back(trained()[i].name + ".momentum_buffer", momentum_buffers_[i]);
  return state;
}

bool Sgd::is_optional(const std::string& name) const { return name.ends_with(".momentum_buffer"); }

}  // namespace gradstep
