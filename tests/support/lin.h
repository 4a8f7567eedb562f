// lin: the toy of tests/cases, exact in floats. One fp32 parameter w = 0 of shape (1, 1); the loss of a
// sample x is w * x.
#pragma once

#include <torch/torch.h>

#include "gradstep/step/engine.h"

namespace gradstep::testing {

struct LinImpl : torch::nn::Module {
  LinImpl() : w(register_parameter("w", torch::zeros({1, 1}))) {}
  at::Tensor forward(const at::Tensor& x) { return x.matmul(w); }  // (n, 1)
  at::Tensor w;
};
TORCH_MODULE(Lin);

inline Task lin_task(Lin lin) {
  Task task;
  task.module = lin.ptr();
  task.forward = [lin](const Batch& batch) mutable { return lin->forward(batch.inputs); };
  task.loss_sum = [](const at::Tensor& outputs, const Batch&) { return outputs.sum(); };
  return task;
}

// SGD without momentum or decay, constant learning rate without warm-up.
inline EngineOptions plain_sgd(int64_t micro_batch, double lr = 1) {
  return {.optimizer = {.kind = OptimizerKind::kSgd, .weight_decay = 0, .momentum = 0},
          .schedule = {.shape = LrShape::kConstant, .peak = lr},
          .micro_batch = micro_batch};
}

// (n, 1) fp32
inline at::Tensor column(const std::vector<float>& values) { return torch::tensor(values).unsqueeze(1); }

inline at::Tensor no_targets(int64_t n) { return torch::zeros({n}, torch::kLong); }

}  // namespace gradstep::testing
