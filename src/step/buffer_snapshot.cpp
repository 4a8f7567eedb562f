// Copies into memory that is kept from window to window.
#include "step/buffer_snapshot.h"

#include <torch/torch.h>

namespace gradstep {

BufferSnapshot::BufferSnapshot(const torch::nn::Module& module) : buffers_(module.buffers()) {
  for (const at::Tensor& buffer : buffers_) saved_.push_back(buffer.clone());
}

void BufferSnapshot::save() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < buffers_.size(); ++i) saved_[i].copy_(buffers_[i], /*non_blocking=*/true);
}

void BufferSnapshot::restore() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(saved_[i], /*non_blocking=*/true);
}

}  // namespace gradstep
