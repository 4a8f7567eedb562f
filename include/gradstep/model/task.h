// Task: a module together with what its loss and its metrics are. What the engine trains and the evaluator
// measures.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace torch::nn {
class Module;
}

namespace gradstep {

struct Task {
  // Owns the parameters: fp32, on one device.
  std::shared_ptr<torch::nn::Module> module;
  // One micro-batch -> outputs, in training or evaluation mode as the module is. Runs under autocast.
  std::function<at::Tensor(const at::Tensor& inputs)> forward;
  // Sum (not mean) of the losses of the samples in fp32, a scalar; differentiable. Runs under autocast.
  std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& targets)> loss_sum;
  // Stored samples -> what forward takes, without gradient; rows stay rows. Empty: as stored.
  std::function<at::Tensor(const at::Tensor& inputs)> prepare;
  // Weight of these targets in the divisor, known before the forward. Empty: the number of samples.
  std::function<double(const at::Tensor& targets)> weight;
};

// Sum over samples of the cross entropy, in fp32 whatever the outputs are. outputs (n, classes), targets (n)
// int64. Symbol in PyTorch: torch.nn.functional.cross_entropy(reduction="sum").
[[nodiscard]] at::Tensor cross_entropy_sum(const at::Tensor& outputs, const at::Tensor& targets,
                                           double label_smoothing = 0);

// A task from any module holder (torch::nn::Sequential, one made by TORCH_MODULE) that maps inputs to class
// scores.
template <typename ModuleHolder>
[[nodiscard]] Task classification_task(ModuleHolder module, double label_smoothing = 0) {
  Task task;
  task.module = module.ptr();
  task.forward = [module](const at::Tensor& inputs) mutable { return module->forward(inputs); };
  task.loss_sum = [label_smoothing](const at::Tensor& outputs, const at::Tensor& targets) {
    return cross_entropy_sum(outputs, targets, label_smoothing);
  };
  return task;
}

}  // namespace gradstep
