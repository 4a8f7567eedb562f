// Ready-made tasks: classification, regression, next-token language modelling.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "gradstep/model/task.h"

namespace gradstep {

/// The cross entropy, summed over targets, in fp32 whatever type the outputs have. outputs (n, classes, ...),
/// targets (n, ...) int64. PyTorch: torch.nn.functional.cross_entropy(reduction="sum").
[[nodiscard]] at::Tensor cross_entropy_sum(const at::Tensor& outputs, const at::Tensor& targets,
                                           double label_smoothing = 0, int64_t ignore_index = kIgnoreIndex);

/// Options of classification_task().
struct ClassificationOptions {
  int64_t num_classes = 0;  ///< for the table of classes and for top-5; 0: not known, no table and no top-5
  double label_smoothing = 0;  ///< as in torch.nn.CrossEntropyLoss; in training only
  /// Targets with this value count neither in the loss nor in its weight.
  int64_t ignore_index = kIgnoreIndex;
  /// True: no target is ignore_index, which the data set has checked. The weight is the number of samples
  /// then, and no target is looked at.
  bool all_targets_count = false;
};

namespace detail {
[[nodiscard]] Task classification(const std::shared_ptr<torch::nn::Module>& module,
                                  const ClassificationOptions& options);
[[nodiscard]] Task regression(const std::shared_ptr<torch::nn::Module>& module);
[[nodiscard]] Task language(const std::shared_ptr<torch::nn::Module>& module, int64_t ignore_index);

template <class Holder>
Task with_forward(Task task, Holder module) {
  task.forward = [module = std::move(module)](const Batch& batch) mutable {
    return module->forward(batch.inputs);
  };
  return task;
}
}  // namespace detail

/// A task for a module that maps inputs to class scores (n, classes, ...); targets (n, ...) int64. `module`
/// is any module holder: torch::nn::Sequential, or one made by TORCH_MODULE. The loss is the cross entropy.
/// Metrics: acc, top5 if there are more than five classes, and a table of the accuracy of each class.
/// PyTorch: torch.nn.CrossEntropyLoss.
template <class ModuleHolder>
[[nodiscard]] Task classification_task(ModuleHolder module, const ClassificationOptions& options = {}) {
  return detail::with_forward(detail::classification(module.ptr(), options), module);
}

/// A task for a module whose outputs have the shape of the targets. The loss is the mean squared error over
/// all their numbers. Metrics: mse, mae. PyTorch: torch.nn.MSELoss.
template <class ModuleHolder>
[[nodiscard]] Task regression_task(ModuleHolder module) {
  return detail::with_forward(detail::regression(module.ptr()), module);
}

/// A task for a module that maps tokens (n, seq) to scores (n, seq, vocab); targets (n, seq) int64, the token
/// that follows each input. The loss is the mean cross entropy over targets that are not ignore_index.
/// Metrics: perplexity, tokens.
template <class ModuleHolder>
[[nodiscard]] Task language_task(ModuleHolder module, int64_t ignore_index = kIgnoreIndex) {
  return detail::with_forward(detail::language(module.ptr(), ignore_index), module);
}

}  // namespace gradstep
