// TaskSnapshot: what a task's functions may change, as it was: the module's buffers (batch norm statistics)
// and the user state. So a window can be undone.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "gradstep/model/task.h"

namespace gradstep {

class TaskSnapshot {
 public:
  // The task must outlive it.
  explicit TaskSnapshot(const Task& task);
  // Copies the buffers and the user state. Costs nothing for a task without any. Never waits for the device.
  // Throws what Task::user_state throws.
  void save();
  // Puts back what the last save() copied. Throws what Task::restore_user_state throws.
  void restore();

 private:
  const Task& task_;
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> saved_;
  UserState user_{};
};

}  // namespace gradstep
