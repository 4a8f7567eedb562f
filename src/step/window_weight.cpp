// A rank that has no weight or no learning rate tells the others, so that all of them throw.
#include "step/window_weight.h"

#include <cmath>
#include <exception>
#include <limits>

#include "base/number_text.h"
#include "dist/over_ranks.h"
#include "gradstep/base/error.h"

namespace gradstep {

double window_weight(const Task& task, const Window& window, int64_t number, c10::Device device,
                     World& world) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (!task.weight) return static_cast<double>(window.total_samples);
  double own = kNan;
  std::exception_ptr error;
  try {
    own = weight_of(task, window.batch);
  } catch (...) {
    error = std::current_exception();
  }
  const bool is_usable = own >= 0 && std::isfinite(own);
  const double total = sum_over_ranks(is_usable ? own : kNan, device, world);
  if (error) std::rethrow_exception(error);
  if (std::isfinite(total)) return total;
  throw ConfigError("Task::weight of window " + std::to_string(number) +
                    (is_usable ? " failed on another rank; its own error says why"
                               : " is " + shortest(own) + ", must be finite and at least 0"));
}

Window window_of(const Batch& batch, int64_t epoch, c10::Device device, World& world) {
  Window window;
  window.batch = batch;
  window.position.epoch = epoch;
  window.total_samples =
      static_cast<int64_t>(sum_over_ranks(static_cast<double>(batch.size()), device, world));
  return window;
}

double window_lr(const LrSchedule& schedule, int64_t update, c10::Device device, World& world) {
  if (!schedule.function) return schedule.at(update);
  double lr = 0;
  std::exception_ptr failure;
  try {
    lr = schedule.at(update);
  } catch (...) {
    failure = std::current_exception();
  }
  const double num_failed = sum_over_ranks(failure ? 1 : 0, device, world);
  if (failure) std::rethrow_exception(failure);
  if (num_failed > 0)
    throw ConfigError("the schedule failed for update " + std::to_string(update) +
                      " on another rank; its own error says why");
  return lr;
}

}  // namespace gradstep
