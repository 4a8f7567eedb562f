// A rank whose weight cannot be used tells the others by a NaN, so that all of them throw.
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
                    (is_usable ? " is negative or not finite on another rank"
                               : " is " + shortest(own) + ", must be finite and at least 0"));
}

}  // namespace gradstep
