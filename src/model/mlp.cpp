// Parameter names are those of PyTorch's state_dict: fc1.weight, fc1.bias, fc2.weight, fc2.bias.
#include "model/mlp.h"

#include <torch/torch.h>

#include "gradstep/model/tasks.h"
#include "model/normalize.h"

namespace gradstep {

MlpImpl::MlpImpl(const MlpOptions& options)
    : options_(options),
      fc1_(register_module("fc1", torch::nn::Linear(options.num_inputs, options.hidden))),
      fc2_(register_module("fc2", torch::nn::Linear(options.hidden, options.num_classes))) {}

at::Tensor MlpImpl::forward(const at::Tensor& inputs) {
  at::Tensor x = inputs.dim() == 2 ? inputs : inputs.flatten(1);  // (n, num_inputs)
  x = at::relu(fc1_->forward(x));                                 // (n, hidden)
  if (options_.dropout > 0) x = at::dropout(x, options_.dropout, is_training());
  return fc2_->forward(x);  // (n, num_classes)
}

Task mlp_task(const MlpOptions& options, double label_smoothing) {
  Task task = classification_task(
      Mlp(options),
      {.num_classes = options.num_classes, .label_smoothing = label_smoothing, .all_targets_count = true});
  task.prepare = [](const Batch& batch) {
    Batch prepared = batch;
    prepared.inputs = normalize_bytes(batch.inputs).flatten(1);
    return prepared;
  };
  return task;
}

}  // namespace gradstep
