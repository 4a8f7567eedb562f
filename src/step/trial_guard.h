// Runs a task on samples for a try, before the run, and leaves no trace of it; and the times of such tries.
#pragma once

#include <string>
#include <utility>
#include <vector>

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

// One micro-batch that is prepared and on the module's device, forward and backward, under autocast where
// `precision` asks for it. Throws what the task throws, and a refusal of a loss that is no number of its kind
// (check_loss).
void forward_backward(const Task& task, const Batch& batch, Precision precision);

// Of a clock that never goes back.
[[nodiscard]] double steady_seconds();
// That the calling thread had a core for.
[[nodiscard]] double thread_cpu_seconds();

// "measured a micro-batch: 2 threads 1.20 ms, 1 thread 1.90 ms", from names and seconds.
[[nodiscard]] std::string times_text(const std::vector<std::pair<std::string, double>>& times);

}  // namespace gradstep
