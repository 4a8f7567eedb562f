// Ready-made tasks: classification, regression, next-token language modelling.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "gradstep/model/task.h"

namespace gradstep {

/// What torch.nn.functional.cross_entropy leaves out by default.
inline constexpr int64_t kIgnoreIndex = -100;

/// Sum over targets of the cross entropy, in fp32 whatever the outputs are. outputs (n, classes, ...),
/// targets (n, ...) int64. PyTorch: torch.nn.functional.cross_entropy(reduction="sum").
[[nodiscard]] at::Tensor cross_entropy_sum(const at::Tensor& outputs, const at::Tensor& targets,
                                           double label_smoothing = 0, int64_t ignore_index = kIgnoreIndex);

struct ClassificationOptions {
  int64_t num_classes = 0;  ///< for the table of classes and for top-5; 0: not known, no table and no top-5
  double label_smoothing = 0;  ///< in training only
  /// Targets with this value count neither in the loss nor in its weight.
  int64_t ignore_index = kIgnoreIndex;
  /// The data set has checked that no target is ignore_index: the weight is the number of samples.
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

/// A task from any module holder (torch::nn::Sequential, one made by TORCH_MODULE) that maps inputs to class
/// scores (n, classes, ...); targets (n, ...) int64. Metrics: acc, top5 where there are more than five
/// classes, and a table of hits by class.
template <class ModuleHolder>
[[nodiscard]] Task classification_task(ModuleHolder module, const ClassificationOptions& options = {}) {
  return detail::with_forward(detail::classification(module.ptr(), options), module);
}

/// Outputs and targets have the same shape; the loss is the mean squared error over all their numbers.
/// Metrics: mse, mae.
template <class ModuleHolder>
[[nodiscard]] Task regression_task(ModuleHolder module) {
  return detail::with_forward(detail::regression(module.ptr()), module);
}

/// Inputs (n, seq) tokens -> scores (n, seq, vocab); targets (n, seq) int64, the token that follows each
/// input. The loss is the mean over targets that are not ignore_index. Metrics: perplexity, tokens.
template <class ModuleHolder>
[[nodiscard]] Task language_task(ModuleHolder module, int64_t ignore_index = kIgnoreIndex) {
  return detail::with_forward(detail::language(module.ptr(), ignore_index), module);
}

}  // namespace gradstep
