// StepReport: what one call of Engine::step did. Plain data, equal on all ranks but for num_micro_batches,
// first_non_finite and modules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gradstep {

/// One module of a window that went wrong, in the order of the parameters.
struct ModuleNorms {
  std::string module{};  ///< "fc1"; "" is the root
  double forward = 0;    ///< 2-norm of what its ops gave, over the window's micro-batches
  double backward = 0;   ///< 2-norm of its parameters' gradients, unscaled
  int64_t num_bad = 0;   ///< values of either that are not finite
  bool operator==(const ModuleNorms&) const = default;
};

/// What became of a window. Only kApplied changes parameters.
enum class StepOutcome {
  kApplied,      ///< one update
  kNotFinite,    ///< a gradient or the norm was not finite
  kSpike,        ///< loss or norm leapt up
  kSteppedOver,  ///< Engine::step_over: not looked at
  kEmpty         ///< its total weight is 0, so it has no mean loss: not looked at either
};

/// Why a loss or a gradient norm counts as a spike.
struct SpikeFinding {
  enum class Quantity { kLoss, kGradNorm };
  Quantity quantity = Quantity::kLoss;
  double value = 0;
  double z_score = 0;       ///< standard deviations above the mean
  double mean = 0;          ///< of the windows before it
  int64_t num_windows = 0;  ///< that the mean is taken over
  bool operator==(const SpikeFinding&) const = default;
};

/// "loss 9.31 is 7.2 deviations above the mean 2.04 of 128 windows"
[[nodiscard]] std::string to_string(const SpikeFinding& spike);

struct StepReport {
  int64_t window = 0;     ///< windows consumed so far, this one included: unique, from 1
  int64_t update = 0;     ///< updates applied so far, this one included if it was
  int64_t epoch = 0;      ///< from 0
  double loss = 0;        ///< mean over the window and all ranks, unscaled; NaN if the window is empty
  double lr = 0;          ///< as used, or as it would have been used
  double grad_norm = 0;   ///< global 2-norm, unscaled, before the clip; NaN if the window is empty
  double loss_scale = 1;  ///< as used
  StepOutcome outcome = StepOutcome::kApplied;
  std::optional<SpikeFinding> spike{};  ///< if the outcome is kSpike
  bool diverged = false;                ///< this was one skip too many in a row: the run should end
  int64_t skipped_total = 0;            ///< windows so far that changed nothing, this one included
  int64_t samples = 0;                  ///< of this window, over all ranks
  double divisor = 0;                   ///< total weight of this window: samples, or target tokens that count
  int64_t num_micro_batches = 0;        ///< on this rank
  int64_t micro_batch = 0;              ///< samples, as used on this rank
  int64_t num_out_of_memory = 0;        ///< times the window was begun again with half the micro-batch
  /// At the first skip of a row, and if diverged: op and parameter where it began, as far as this rank saw.
  std::string first_non_finite{};
  /// At the first skip of a row that was not finite, as this rank saw it.
  std::vector<ModuleNorms> modules{};

  /// True unless the window was applied: nothing was changed.
  [[nodiscard]] bool skipped() const { return outcome != StepOutcome::kApplied; }
};

}  // namespace gradstep
