// Averages lie in a vector parallel to the parameters, and move by the op that PyTorch's AveragedModel calls.
#include "step/ema.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace gradstep {

EmaWeights::EmaWeights(NamedTensors parameters, double decay)
    : parameters_(std::move(parameters)), decay_(decay) {
  if (!enabled() || parameters_.empty()) return;
  int64_t largest = 0;
  for (const auto& [name, parameter] : parameters_) {
    averages_.push_back(parameter.detach().clone());
    largest = std::max(largest, parameter.numel());
  }
  spare_ = at::empty({largest}, averages_.front().options());
}

void EmaWeights::reset() {
  for (size_t i = 0; i < averages_.size(); ++i) averages_[i].copy_(parameters_[i].second.detach());
}

void EmaWeights::update() {
  if (!enabled()) return;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parameters;
  parameters.reserve(parameters_.size());
  for (const auto& [name, parameter] : parameters_) parameters.push_back(parameter);
  at::_foreach_lerp_(averages_, parameters, 1 - decay_);
}

NamedTensors EmaWeights::tensors() const {
  NamedTensors tensors;
  for (size_t i = 0; i < averages_.size(); ++i) tensors.emplace_back(parameters_[i].first, averages_[i]);
  return tensors;
}

void EmaWeights::swap() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < averages_.size(); ++i) {
    const at::Tensor& parameter = parameters_[i].second;
    const at::Tensor kept = spare_.narrow(0, 0, parameter.numel()).view(parameter.sizes());
    kept.copy_(parameter);
    parameter.copy_(averages_[i]);
    averages_[i].copy_(kept);
  }
}

}  // namespace gradstep
