// Copies into memory that is kept from window to window.
#include "step/task_snapshot.h"

#include <torch/torch.h>

namespace gradstep {
namespace {

constexpr int64_t kUnknown = -1;  // nobody counts the changes of a tensor made in inference mode

int64_t version_of(const at::Tensor& tensor) { return tensor.is_inference() ? kUnknown : tensor._version(); }

// Where nothing can go back to what was saved, nothing is.
bool has_user_state(const Task& task) { return task.user_state && task.restore_user_state; }

}  // namespace

TaskSnapshot::TaskSnapshot(const Task& task) : task_(task), buffers_(task.module->buffers()) {
  for (const at::Tensor& buffer : buffers_) saved_.push_back(buffer.clone());
}

void TaskSnapshot::save() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < buffers_.size(); ++i) saved_[i].copy_(buffers_[i], /*non_blocking=*/true);
  if (!has_user_state(task_)) return;
  user_ = task_.user_state();
  copied_.resize(user_.tensors.size());
  for (size_t i = 0; i < copied_.size(); ++i) {
    at::Tensor& live = user_.tensors[i].second;
    Copied& copied = copied_[i];
    if (!live.defined()) continue;
    const int64_t version = version_of(live);
    if (!copied.live.is_same(live) || version != copied.version || version == kUnknown)
      copied = {.live = live, .copy = live.detach().clone(), .version = version};
    live = copied.copy;
  }
}

void TaskSnapshot::restore() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(saved_[i], /*non_blocking=*/true);
  if (has_user_state(task_)) task_.restore_user_state(user_);
}

}  // namespace gradstep
