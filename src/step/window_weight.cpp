// What fails on one rank is thrown on all of them.
#include "step/window_weight.h"

#include <cmath>
#include <exception>
#include <optional>

#include "base/number_text.h"
#include "dist/over_ranks.h"
#include "dist/together.h"
#include "gradstep/base/error.h"

namespace gradstep {

double window_weight(const Task& task, const Window& window, int64_t number, c10::Device device,
                     World& world) {
  if (!task.weight) return static_cast<double>(window.total_samples);
  double own = 0;
  std::exception_ptr failure;
  try {
    own = weight_of(task, window.batch);
    if (!(own >= 0 && std::isfinite(own)))
      throw ConfigError("Task::weight of window " + std::to_string(number) + " is " + shortest(own) +
                        ", must be finite and at least 0");
  } catch (...) {
    failure = std::current_exception();
  }
  const std::optional<double> total = sum_unless_failed(own, failure != nullptr, device, world);
  if (!total) throw_together(failure, device, world);
  return *total;
}

Window window_of(const Batch& batch, int64_t epoch, c10::Device device, World& world) {
  together([&] { check_rows(batch, batch.size()); }, device, world);
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
  together([&] { lr = schedule.at(update); }, device, world);
  return lr;
}

}  // namespace gradstep
