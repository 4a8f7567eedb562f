// Small modules and helpers for the tests of the step and run rooms.
#pragma once

#include <torch/torch.h>

#include "gradstep/dist/world.h"
#include "gradstep/model/tasks.h"
#include "gradstep/step/engine.h"
#include "step/ema.h"

namespace gradstep::testing {

// A world of one for all tests that need no other.
inline World& solo() {
  static SoloWorld world;
  return world;
}

// Linear(4, 3) as a classifier, seeded.
inline torch::nn::Sequential small_classifier(uint64_t seed = 0) {
  torch::manual_seed(seed);
  return torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::ReLU(), torch::nn::Linear(8, 3));
}

// Copies of a module's parameters and of an optimizer's state, to compare by bytes later.
inline std::vector<at::Tensor> copies(const NamedTensors& named) {
  std::vector<at::Tensor> result;
  for (const auto& [name, tensor] : named) result.push_back(tensor.detach().clone());
  return result;
}

// Throws if there is none, so that a test fails.
inline at::Tensor tensor_named(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [each, tensor] : tensors) {
    if (each == name) return tensor;
  }
  throw std::out_of_range("no tensor " + name);
}

// Equal in every byte: NaN equals NaN, and -0 differs from 0.
inline bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.contiguous();
  const at::Tensor y = b.contiguous();
  return x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
         (x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0);
}

inline bool same_bytes(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_bytes(a[i], b[i])) return false;
  }
  return true;
}

// Parameters and moments, steps included.
inline std::vector<at::Tensor> everything(const Engine& engine) {
  std::vector<at::Tensor> all = copies(engine.optimizer().parameters());
  for (const at::Tensor& tensor : copies(engine.optimizer().state())) all.push_back(tensor);
  return all;
}

// One parameter w (of `values`), whose gradient is what the inputs say: loss = sum over rows of <row, w>.
struct DotImpl : torch::nn::Module {
  explicit DotImpl(at::Tensor values) : w(register_parameter("w", std::move(values))) {}
  at::Tensor forward(const at::Tensor& x) { return (x * w).sum(); }
  at::Tensor w;
};
TORCH_MODULE(Dot);

inline Task dot_task(Dot dot) {
  Task task;
  task.module = dot.ptr();
  task.forward = [dot](const Batch& batch) mutable { return dot->forward(batch.inputs); };
  task.loss_sum = [](const at::Tensor& outputs, const Batch&) { return outputs; };
  return task;
}

}  // namespace gradstep::testing
