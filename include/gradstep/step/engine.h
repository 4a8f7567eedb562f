// Engine: one call of step() turns one window into one update. Accumulation, precision, scale, check, clip,
// optimizer, schedule.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradstep/base/step_report.h"
#include "gradstep/data/loader.h"
#include "gradstep/dist/world.h"
#include "gradstep/model/task.h"
#include "gradstep/step/lr_schedule.h"
#include "gradstep/step/optimizer.h"
#include "gradstep/step/precision.h"

namespace gradstep {

/// The loss scale of fp16 training. Its trajectory equals that of torch.amp.GradScaler, down to a floor of 1.
struct GradScalerOptions {
  double init_scale = 65536.0;
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;  ///< finite updates in a row before the scale grows
};

/// Which windows count as a spike of the loss or of the gradient norm.
struct SpikeOptions {
  /// Standard deviations (a thousandth of the mean at the least) above the mean; 0: off.
  double z_score = 0;
  /// Values that mean and deviation are taken over; none is judged before that many.
  int64_t window = 128;
};

/// What the spikes are measured against, oldest first; part of a checkpoint.
struct SpikeHistory {
  std::vector<double> losses{};
  std::vector<double> grad_norms{};
  bool operator==(const SpikeHistory&) const = default;
};

struct EngineOptions {
  OptimizerOptions optimizer{};
  /// Makes an optimizer of your own; optimizer.groups still holds. Empty: the kind that `optimizer` names.
  OptimizerFactory make_optimizer{};
  LrSchedule schedule{};
  Precision precision = Precision::kFp32;
  GradScalerOptions scaler{};  ///< used by fp16 only
  /// Samples that go through the model at once; changes memory and speed, not the update. A task that is not
  /// divisible takes its whole window at once.
  int64_t micro_batch = 32;
  double clip_grad = 0;             ///< global norm; 0: off
  int64_t max_skips_in_a_row = 20;  ///< then StepReport::diverged
  uint64_t seed = 0;                ///< of the windows' random numbers
  double ema_decay = 0;             ///< moving average of the parameters; 0: off
  SpikeOptions spikes{};            ///< a window whose loss or norm is one is skipped
};

/// Throws ConfigError naming the option for a value that makes no sense.
void validate(const EngineOptions& options);

/// What the engine must remember between updates, besides parameters, moments and scale.
struct EngineCounters {
  int64_t windows = 0;         ///< consumed
  int64_t updates = 0;         ///< applied
  int64_t skipped_total = 0;   ///< windows that changed nothing
  int64_t skips_in_a_row = 0;  ///< that were not finite or spikes
};

/// All of an engine but its tensors: with parameters, buffers, moments and averages, enough to go on bit for
/// bit.
struct EngineState {
  EngineCounters counters{};
  double loss_scale = 1;
  int64_t num_good_updates = 0;    ///< towards the scale's next growth
  int64_t micro_batch = 0;         ///< in use: smaller than asked for after an out of memory
  std::string first_non_finite{};  ///< in the row of skips that goes on; empty: there is none, or not known
  SpikeHistory spikes{};
};

/// What a second look at a window showed.
struct Examination {
  std::string first_non_finite{};      ///< op and parameter; empty: all was finite
  std::vector<ModuleNorms> modules{};  ///< in the order of the parameters, as this rank sees them
};

/// Trains a task. Can be moved, not copied. One thread at a time; in a world of several ranks all of them
/// make the same calls in the same order, and take the same decisions.
class Engine {
 public:
  /// The world must outlive the engine. Parameters of frozen groups stop requiring gradients. Throws
  /// ConfigError for options that make no sense, for parameters to train that are not fp32 (naming the
  /// first), and for a module without parameters to train.
  Engine(Task task, const EngineOptions& options, World& world);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  /// Consumes the window: `window.batch` as the data set stores it, on any device. Puts the module into
  /// training mode. Waits for the device once, and once more in GradSync if there are several ranks. A window
  /// whose gradients are not finite changes nothing but the scale and the counts, and a window whose weight
  /// is 0 nothing but the counts; the report says so. Throws ConfigError for a weight that is negative or not
  /// finite. After an exception of the task (or of tensors that do not fit) gradients are empty, buffers are
  /// as before, autocast is off, and the same window may be given again; the other ranks throw Error. If
  /// memory runs out on a rank, all ranks halve the micro-batch, for good, and begin the window again. If
  /// half would be no less (one sample, or two under batch norm), or the task is not divisible, throws Error
  /// (out of memory), and the engine is as before.
  StepReport step(const Window& window);

  /// For windows made by hand: inputs (n, ...), targets (n, ...). `epoch` only labels the report.
  StepReport step(const at::Tensor& inputs, const at::Tensor& targets, int64_t epoch = 0);

  /// Consumes the window without looking at it: parameters, moments and scale stay; it counts as skipped.
  StepReport step_over(const Window& window);

  /// Forward and backward of the window as step() would do them now, under an observer; changes and consumes
  /// nothing. Several times slower than an update. Needs more memory than step() does: if memory runs out,
  /// the result only says so. With `divisor`, which is StepReport::divisor of that window, a rank may call it
  /// alone; without, all ranks call it together.
  [[nodiscard]] Examination examine(const Window& window, std::optional<double> divisor = {});

  /// False if step() threw when the parameters had moved already: the state belongs to no window then.
  [[nodiscard]] bool is_whole() const;
  [[nodiscard]] EngineState state() const;
  /// Takes over counters, scale, micro-batch and history; the tensors are the caller's to copy, into what
  /// optimizer().parameters(), optimizer().state(), averages() and the module's buffers name.
  void restore(const EngineState& state);

  /// Learning rate of the next update.
  [[nodiscard]] double next_lr() const;
  [[nodiscard]] const EngineCounters& counters() const;
  /// As given, but for the micro-batch, which is the one in use.
  [[nodiscard]] const EngineOptions& options() const;
  [[nodiscard]] const Task& task() const;
  [[nodiscard]] const Optimizer& optimizer() const;
  /// Parameters that rest: their group is frozen, or they require no gradient.
  [[nodiscard]] const NamedTensors& frozen() const;
  /// The moving averages by the parameters' names; they share memory with the engine. Empty if
  /// EngineOptions::ema_decay is 0. PyTorch: torch.optim.swa_utils.AveragedModel with
  /// get_ema_multi_avg_fn(decay).
  [[nodiscard]] NamedTensors averages() const;
  /// Begins the averages anew, as copies of the parameters.
  void reset_averages();
  [[nodiscard]] at::Device device() const;

 private:
  friend class AveragesGuard;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// While it lives, the parameters of the engine hold the moving averages, bit for bit, and the averages hold
/// the parameters: to evaluate the averages, or to write them to a file. Does nothing without averages.
class AveragesGuard {
 public:
  explicit AveragesGuard(Engine& engine);
  ~AveragesGuard();
  AveragesGuard(const AveragesGuard&) = delete;
  AveragesGuard& operator=(const AveragesGuard&) = delete;

 private:
  Engine& engine_;
};

}  // namespace gradstep
