// Accumulator: the forward and backward passes of one window on this rank, in micro-batches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "dist/grad_sync.h"
#include "gradstep/model/task.h"
#include "gradstep/step/engine.h"
#include "gradstep/step/precision.h"

namespace gradstep {

// Throws ConfigError unless it is what Task::loss_sum must give: one fp32 number with gradient.
void check_loss(const at::Tensor& loss);

class Accumulator {
 public:
  // The task must outlive it.
  Accumulator(const Task& task, Precision precision, at::Device device);

  // Adds the gradients of factor * loss_sum over the samples of `batch` to the parameters' .grad. Arms `sync`
  // before the last backward pass (at once where the batch is empty); null: there is nobody to tell. Returns
  // the loss sums, one a micro-batch; nothing where `give_up` has ended it, with gradients half done. Throws
  // what the task throws, likewise.
  std::optional<std::vector<at::Tensor>> run(const Batch& batch, int64_t micro_batch, double factor,
                                             GradSync* sync, const GiveUp& give_up);

  // Samples that a micro-batch needs: batch norm has no variance over one.
  [[nodiscard]] int64_t smallest_micro_batch() const { return has_batch_norm_ ? 2 : 1; }

 private:
  at::Tensor forward_backward(const Batch& batch, GradSync* sync);

  const Task& task_;
  Precision precision_;
  at::Device device_;
  bool has_batch_norm_;
  at::Tensor seed_grad_;  // 0-dim fp32: d(scaled mean loss)/d(loss sum)
};

}  // namespace gradstep
