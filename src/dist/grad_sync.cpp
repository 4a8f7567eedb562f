// All gradients travel in one flat buffer, with a flag a parameter behind them that says whether the rank had
// one.
#include "gradstep/dist/grad_sync.h"

#include <ATen/ATen.h>

namespace gradstep {

GradSync::GradSync(std::vector<at::Tensor> parameters, World& world)
    : parameters_(std::move(parameters)), world_(world) {}

void GradSync::sum_() {
  if (world_.size() == 1 || parameters_.empty()) return;
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> pieces;
  std::vector<float> has_grad;
  for (const at::Tensor& parameter : parameters_) {
    const at::Tensor& grad = parameter.grad();
    has_grad.push_back(grad.defined() ? 1.0F : 0.0F);
    pieces.push_back(grad.defined() ? grad.flatten() : at::zeros({parameter.numel()}, parameter.options()));
  }
  pieces.push_back(at::tensor(has_grad).to(parameters_.front().options()));
  at::Tensor flat = at::cat(pieces);
  world_.all_reduce_sum(flat);

  const int64_t num_parameters = static_cast<int64_t>(parameters_.size());
  const at::Tensor flags = flat.narrow(0, flat.numel() - num_parameters, num_parameters).cpu();
  int64_t offset = 0;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& parameter = parameters_[i];
    if (flags[static_cast<int64_t>(i)].item<float>() > 0) {
      parameter.mutable_grad() = flat.narrow(0, offset, parameter.numel()).view_as(parameter);
    }
    offset += parameter.numel();
  }
}

}  // namespace gradstep
