// TrialGuard: runs a task on samples for a try, before the run, and leaves no trace of it.
#pragma once

#include "gradstep/step/precision.h"
#include "model/mode_guard.h"
#include "step/task_snapshot.h"
#include "step/window_seed.h"

namespace gradstep {

// Training mode while it lives. undo(), or the destructor, empties the gradients and puts back buffers, user
// state and use_matmul(); the destructor also puts back modes and generators.
class TrialGuard {
 public:
  // The task must outlive it. Throws what Task::user_state throws.
  TrialGuard(const Task& task, c10::Device device);
  ~TrialGuard();
  // Throws what Task::restore_user_state throws.
  void undo();
  TrialGuard(const TrialGuard&) = delete;
  TrialGuard& operator=(const TrialGuard&) = delete;

 private:
  const Task& task_;
  TaskSnapshot snapshot_;
  bool undone_ = false;
  ModeGuard mode_;
  GeneratorsGuard generators_;
  Matmul matmul_;
};

}  // namespace gradstep
