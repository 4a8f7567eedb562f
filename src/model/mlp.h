// Mlp: inputs -> fc1 -> ReLU -> dropout -> fc2 -> class scores. The reference job's model.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "gradstep/model/task.h"

namespace gradstep {

struct MlpOptions {
  int64_t num_inputs = 784;
  int64_t hidden = 256;
  int64_t num_classes = 10;
  double dropout = 0;  // after the ReLU
};

class MlpImpl : public torch::nn::Module {
 public:
  // Draws from the default generator as Python's nn.Linear(num_inputs, hidden), nn.Linear(hidden,
  // num_classes) do.
  explicit MlpImpl(const MlpOptions& options);
  // (n, ...) with num_inputs numbers a sample -> (n, num_classes)
  at::Tensor forward(const at::Tensor& inputs);

 private:
  MlpOptions options_;
  torch::nn::Linear fc1_;
  torch::nn::Linear fc2_;
};
TORCH_MODULE(Mlp);

// Classification of pictures by an Mlp: stored bytes are normalised (normalize_bytes) and flattened. The
// data set has checked that every target is a class.
[[nodiscard]] Task mlp_task(const MlpOptions& options, double label_smoothing = 0);

}  // namespace gradstep
