// no torch
// docs/design.md, section 4, line 11, evaluated in fp64 in the order in which it is written there.
#include "gradstep/step/lr_schedule.h"

#include <cmath>
#include <numbers>

#include "base/is_within.h"
#include "base/number_text.h"
#include "gradstep/base/error.h"

namespace gradstep {

namespace {

double checked(double lr, int64_t update) {
  if (lr >= 0 && std::isfinite(lr)) return lr;
  throw ConfigError("schedule: its function gives " + shortest(lr) + " for update " + std::to_string(update) +
                    ", must be finite and at least 0");
}

}  // namespace

std::string to_string(LrShape shape) {
  if (shape == LrShape::kConstant) return "constant";
  return shape == LrShape::kLinear ? "linear" : "cosine";
}

LrShape parse_lr_shape(const std::string& text) {
  if (text == "cosine") return LrShape::kCosine;
  if (text == "linear") return LrShape::kLinear;
  if (text == "constant") return LrShape::kConstant;
  throw ConfigError("schedule \"" + text + "\" is not one of cosine, linear, constant");
}

double LrSchedule::at(int64_t k) const {
  if (function) return checked(function(k), k);
  if (k <= warmup_steps) return peak * static_cast<double>(k) / static_cast<double>(warmup_steps);
  if (shape == LrShape::kConstant) return peak;
  if (k >= total_steps) return min;
  const double span = static_cast<double>(total_steps - warmup_steps);
  if (shape == LrShape::kLinear) return min + (peak - min) * static_cast<double>(total_steps - k) / span;
  const double angle = std::numbers::pi * static_cast<double>(k - warmup_steps) / span;
  return min + (peak - min) * (1.0 + std::cos(angle)) / 2.0;
}

void validate(const LrSchedule& schedule) {
  if (schedule.function) return;
  if (!is_within(schedule.shape, LrShape::kCosine, LrShape::kConstant))
    throw ConfigError("schedule: shape must be LrShape::kCosine, kLinear or kConstant");
  const auto number = [](int64_t n) { return std::to_string(n); };
  if (!(schedule.peak >= 0) || !std::isfinite(schedule.peak) || !(schedule.min >= 0) ||
      schedule.warmup_steps < 0) {
    throw ConfigError("schedule: learning rates and warm-up must be finite and must not be negative");
  }
  if (schedule.total_steps > 0 && schedule.warmup_steps > schedule.total_steps) {
    throw ConfigError("schedule: `warmup_steps` " + number(schedule.warmup_steps) + " is more than the " +
                      number(schedule.total_steps) +
                      " updates of the whole run; lower `warmup_steps` (0: none) or train longer");
  }
  if (schedule.shape == LrShape::kConstant) return;
  if (schedule.total_steps < 1) {
    throw ConfigError("schedule: total_steps is " + number(schedule.total_steps) +
                      ", and cosine and linear end there; set it to the updates of the run");
  }
  if (schedule.min > schedule.peak) {
    throw ConfigError("schedule: `min_lr` " + shortest(schedule.min) + " is above `lr` " +
                      shortest(schedule.peak) + "; lower `min_lr` or raise `lr`");
  }
}

}  // namespace gradstep
