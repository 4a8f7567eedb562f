// The task's own functions may throw when their state goes back.
#include "step/trial_guard.h"

#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <ctime>

#include "step/accumulator.h"

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

void forward_backward(const Task& task, const Batch& batch, Precision precision) {
  at::Tensor loss;
  {
    const AutocastGuard autocast(task.module->parameters().front().device().type(), precision);
    loss = task.loss_sum(task.forward(batch), batch);
  }
  if (!loss.requires_grad()) return;  // the engine will refuse a module that is frozen altogether
  check_loss(loss);
  loss.backward();
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double thread_cpu_seconds() {
  timespec time{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::string times_text(const std::vector<std::pair<std::string, double>>& times) {
  std::string text = "measured a micro-batch:";
  for (const auto& [name, seconds] : times) {
    char number[32];
    std::snprintf(number, sizeof number, " %.2f ms", seconds * 1e3);
    text += (&name == &times.front().first ? " " : ", ") + name + number;
  }
  return text;
}

}  // namespace gradstep
