// StepReport: what one call of Engine::step did. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gradstep {

/// The norms of one module in a window that went wrong.
struct ModuleNorms {
  std::string module{};  ///< "fc1"; "" is the root
  double forward = 0;    ///< 2-norm of the outputs of its ops, over the micro-batches of the window
  double backward = 0;   ///< 2-norm of the gradients of its parameters, unscaled
  int64_t num_bad = 0;   ///< values in either that are not finite
  /// Equal if all fields are equal.
  bool operator==(const ModuleNorms&) const = default;
};

/// What became of a window. Only kApplied changes parameters.
enum class StepOutcome {
  kApplied,      ///< one update was made
  kNotFinite,    ///< skipped: a gradient or the norm was not finite
  kSpike,        ///< skipped: the loss or the norm leapt up
  kSteppedOver,  ///< skipped by Engine::step_over(), without a forward pass
  kEmpty,        ///< skipped without a forward pass: its total weight is 0, so it has no mean loss
  kGivenUp       ///< not consumed: GiveUp ended it between two micro-batches, and nothing has changed
};

/// Why a loss or a gradient norm counts as a spike.
struct SpikeFinding {
  /// What can leap up.
  enum class Quantity {
    kLoss,     ///< the mean loss of the window
    kGradNorm  ///< the global norm of its gradients
  };
  Quantity quantity = Quantity::kLoss;  ///< what leapt up
  double value = 0;                     ///< how far
  double z_score = 0;                   ///< standard deviations above the mean
  double mean = 0;                      ///< of the windows before it
  int64_t num_windows = 0;              ///< number of windows that the mean is taken over
  /// Equal if all fields are equal.
  bool operator==(const SpikeFinding&) const = default;
};

/// One line: "loss 9.31 is 7.2 deviations above the mean 2.04 of 128 windows".
[[nodiscard]] std::string to_string(const SpikeFinding& spike);

/// What one call of Engine::step() did. All ranks get the same values, except for `num_micro_batches`.
struct StepReport {
  int64_t window = 0;     ///< windows consumed so far, this one included: unique, from 1
  int64_t update = 0;     ///< updates applied so far, this one included if it was applied
  int64_t epoch = 0;      ///< from 0
  double loss = 0;        ///< mean over the window and all ranks, unscaled; NaN if the window is empty
  double lr = 0;          ///< learning rate as used, or as it would have been used
  double grad_norm = 0;   ///< global 2-norm, unscaled, before the clip; NaN if the window is empty
  double loss_scale = 1;  ///< as used in this window; 1 unless fp16
  StepOutcome outcome = StepOutcome::kApplied;  ///< what became of the window
  std::optional<SpikeFinding> spike{};          ///< why, if the outcome is kSpike
  bool diverged = false;                        ///< this was one skip too many in a row: the run should end
  int64_t skipped_total = 0;                    ///< windows so far that changed nothing, this one included
  int64_t samples = 0;                          ///< of this window, over all ranks
  double divisor = 0;             ///< total weight of this window: samples, or target tokens that count
  int64_t num_micro_batches = 0;  ///< on this rank
  int64_t micro_batch = 0;        ///< samples of a micro-batch, as used on this rank
  int64_t num_out_of_memory = 0;  ///< times that the window began again with half the micro-batch
  /// The op and the parameter where a value that is not finite first appeared. Set for the first window
  /// since the last update that is not finite, and if `diverged`.
  std::string first_non_finite{};
  int64_t non_finite_rank = 0;  ///< the rank where it appeared
  /// The norms of the modules, in the order of their parameters, as `non_finite_rank` saw them. Set for the
  /// first window since the last update that is not finite.
  std::vector<ModuleNorms> modules{};

  /// True unless the window was applied: parameters, moments and buffers stayed as they were.
  [[nodiscard]] bool skipped() const { return outcome != StepOutcome::kApplied; }
};

}  // namespace gradstep
