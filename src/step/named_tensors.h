// The tensors of a list of names, and their gradients.
#pragma once

#include <vector>

#include "gradstep/io/safetensors.h"

namespace gradstep {

[[nodiscard]] inline std::vector<at::Tensor> values(const NamedTensors& named) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : named) tensors.push_back(tensor);
  return tensors;
}

// Of those that have one.
[[nodiscard]] inline std::vector<at::Tensor> gradients(const NamedTensors& parameters) {
  std::vector<at::Tensor> grads;
  grads.reserve(parameters.size());
  for (const auto& [name, parameter] : parameters) {
    if (parameter.grad().defined()) grads.push_back(parameter.grad());
  }
  return grads;
}

}  // namespace gradstep
