// The learning rate as a pure function of the update number: linear warm-up, then cosine, linear or constant;
// or a function of your own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace gradstep {

/// How the learning rate goes on after the warm-up.
enum class LrShape {
  kCosine,   ///< half a cosine from `peak` down to `min`
  kLinear,   ///< a line from `peak` down to `min`
  kConstant  ///< stays at `peak`
};

/// "cosine", "linear" or "constant".
[[nodiscard]] std::string to_string(LrShape shape);
/// Reads "cosine", "linear" or "constant". Throws ConfigError for any other text.
[[nodiscard]] LrShape parse_lr_shape(const std::string& text);

/// The learning rate of each update: a linear warm-up, then a shape, or a function of your own. PyTorch:
/// torch.optim.lr_scheduler, but without a state.
struct LrSchedule {
  LrShape shape = LrShape::kCosine;  ///< after the warm-up
  double peak = 1e-3;                ///< learning rate at the end of the warm-up
  double min = 0;                    ///< learning rate at the end; unused by kConstant
  int64_t warmup_steps = 0;          ///< updates; 0: no warm-up
  int64_t total_steps = 0;           ///< updates, warm-up included; kConstant needs none

  /// Gives the learning rate of an update, from 1, and takes the place of everything above. It must depend on
  /// the number of the update alone: the engine asks more than once, and a resumed run asks for the update
  /// that comes next.
  std::function<double(int64_t update)> function{};

  /// The learning rate of update k, from 1. With w = warmup_steps and T = total_steps it is peak * k / w up
  /// to w, then the shape, and min from T on (peak if constant). Warm-up is tested first: (w, T) = (1, 1)
  /// gives peak, and (0, 1) gives min. REQUIRES: k >= 1. Throws ConfigError if a function of your own gives a
  /// negative number or one that is not finite.
  [[nodiscard]] double at(int64_t k) const;
};

/// Throws ConfigError if the values make no schedule: more warm-up than updates, negative numbers, min above
/// peak, or no total_steps for a cosine or a line. Does not check a function of your own.
void validate(const LrSchedule& schedule);

}  // namespace gradstep
