// Copies into memory that is kept from window to window.
#include "step/task_snapshot.h"

#include <torch/torch.h>

namespace gradstep {
namespace {

// Where nothing can go back to what was saved, nothing is.
bool has_user_state(const Task& task) { return task.user_state && task.restore_user_state; }

// `copy` keeps its memory if it has the layout already.
void copy_into(at::Tensor& copy, const at::Tensor& live) {
  if (!live.defined()) {
    copy = at::Tensor();
  } else if (copy.defined() && copy.options().type_equal(live.options()) && copy.device() == live.device() &&
             copy.sizes() == live.sizes()) {
    copy.copy_(live, /*non_blocking=*/true);
  } else {
    copy = live.detach().clone();
  }
}

}  // namespace

TaskSnapshot::TaskSnapshot(const Task& task) : task_(task), buffers_(task.module->buffers()) {
  for (const at::Tensor& buffer : buffers_) saved_.push_back(buffer.clone());
}

void TaskSnapshot::save() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < buffers_.size(); ++i) saved_[i].copy_(buffers_[i], /*non_blocking=*/true);
  if (!has_user_state(task_)) return;
  const UserState now = task_.user_state();
  user_.values = now.values;
  user_.tensors.resize(now.tensors.size());
  for (size_t i = 0; i < now.tensors.size(); ++i) {
    user_.tensors[i].first = now.tensors[i].first;
    copy_into(user_.tensors[i].second, now.tensors[i].second);
  }
}

void TaskSnapshot::restore() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(saved_[i], /*non_blocking=*/true);
  if (!has_user_state(task_)) return;
  UserState state = user_;  // the task may keep what it gets
  for (auto& [name, tensor] : state.tensors) tensor = tensor.defined() ? tensor.clone() : tensor;
  task_.restore_user_state(state);
}

}  // namespace gradstep
