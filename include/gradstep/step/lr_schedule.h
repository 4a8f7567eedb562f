// The learning rate as a pure function of the update number: linear warm-up, then cosine, linear or constant;
// or a function of your own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace gradstep {

enum class LrShape { kCosine, kLinear, kConstant };

/// "cosine", "linear", "constant".
[[nodiscard]] std::string to_string(LrShape shape);
// Throws ConfigError for a text that is not "cosine", "linear" or "constant".
[[nodiscard]] LrShape parse_lr_shape(const std::string& text);

struct LrSchedule {
  LrShape shape = LrShape::kCosine;
  double peak = 1e-3;
  double min = 0;            // unused by kConstant
  int64_t warmup_steps = 0;  // updates
  int64_t total_steps = 0;   // updates; unused by kConstant

  /// Learning rate of update k, from 1. Takes the place of everything above. It must depend on k alone: the
  /// engine asks more than once, and a run that goes on asks for the update that comes next.
  std::function<double(int64_t update)> function{};

  /// Learning rate of update k (from 1): peak*k/w up to w, then the shape; min from total_steps on (peak if
  /// constant). REQUIRES: k >= 1. Warm-up is tested first: (w, T) = (1, 1) gives peak, (0, 1) gives min.
  /// Throws ConfigError if a function of your own gives a negative number or one that is not finite.
  [[nodiscard]] double at(int64_t k) const;
};

/// Throws ConfigError when values make no schedule: w > T, negative numbers, min above peak, or no T where
/// the shape needs one. A function of your own is not asked.
void validate(const LrSchedule& schedule);

}  // namespace gradstep
