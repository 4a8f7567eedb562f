// Task: a module together with what its loss and its metrics are. What the engine trains and the evaluator measures.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace torch::nn {
class Module;
}

namespace gradstep {

struct Task {
  // Owns the parameters: fp32, on one device.
  std::shared_ptr<torch::nn::Module> module;
  // Stored samples -> what forward takes, without gradient; rows stay rows. Empty: as stored.
  std::function<at::Tensor(const at::Tensor& inputs)> prepare;
  // One micro-batch -> outputs, in training or evaluation mode as the module is. Runs under autocast.
  std::function<at::Tensor(const at::Tensor& inputs)> forward;
  // Sum (not mean) of the losses of the samples in fp32, a scalar; differentiable.
  std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets)> loss_sum;
  // Weight of these targets in the divisor, known before the forward. Empty: the number of samples.
  std::function<double(const at::Tensor& targets)> weight;
  int64_t num_classes = 0;  // 0: no accuracy
  double label_smoothing = 0;
};

}  // namespace gradstep
