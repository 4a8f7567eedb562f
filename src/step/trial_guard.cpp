// The task's own functions may throw when their state goes back.
#include "step/trial_guard.h"

#include <torch/torch.h>

namespace gradstep {

TrialGuard::TrialGuard(const Task& task, c10::Device device)
    : task_(task),
      snapshot_(task),
      mode_(*task.module, /*training=*/true),
      generators_(device),
      matmul_(current_matmul()) {
  snapshot_.save();
}

TrialGuard::~TrialGuard() {
  if (undone_) return;
  try {
    undo();
  } catch (...) {  // the error that ended the trial is the one that counts
  }
}

void TrialGuard::undo() {
  undone_ = true;
  task_.module->zero_grad(/*set_to_none=*/true);
  use_matmul(matmul_);
  snapshot_.restore();
}

}  // namespace gradstep
