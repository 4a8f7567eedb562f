// Engine: one call of step() turns one window into one update. Accumulation, precision, scale, check, clip,
// optimizer, schedule.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
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

/// The loss scale of fp16 training. It moves as that of torch.amp.GradScaler, but not below 1.
struct GradScalerOptions {
  double init_scale = 65536.0;     ///< the scale of the first window
  double growth_factor = 2.0;      ///< times the scale, after `growth_interval` finite updates
  double backoff_factor = 0.5;     ///< times the scale, after a window that is not finite
  int64_t growth_interval = 2000;  ///< finite updates in a row before the scale grows
};

/// Which windows count as a spike of the loss or of the gradient norm.
struct SpikeOptions {
  /// A value is a spike if it is more than so many standard deviations above the mean. The deviation counts
  /// as at least a thousandth of the mean. 0: off.
  double z_score = 0;
  /// Mean and deviation are those of the last so many values, 2 or more. No value is judged before there are
  /// so many.
  int64_t window = 128;
};

/// The values that the next window is judged by, oldest first. Part of a checkpoint.
struct SpikeHistory {
  std::vector<double> losses{};      ///< of the last SpikeOptions::window windows
  std::vector<double> grad_norms{};  ///< likewise
  /// Equal if both fields are equal.
  bool operator==(const SpikeHistory&) const = default;
};

/// How an engine trains.
struct EngineOptions {
  OptimizerOptions optimizer{};  ///< which optimizer, and the groups of parameters
  /// Makes an optimizer of your own; `optimizer.groups` still holds. Empty: the kind that `optimizer` names.
  OptimizerFactory make_optimizer{};
  LrSchedule schedule{};                   ///< the learning rate of each update
  Precision precision = Precision::kFp32;  ///< of the forward pass
  GradScalerOptions scaler{};              ///< used by fp16 only
  /// Samples that go through the model at once. It changes memory and speed, not the update. A task that is
  /// not divisible takes its whole window at once.
  int64_t micro_batch = 32;
  double clip_grad = 0;             ///< largest global norm, as torch.nn.utils.clip_grad_norm_; 0: no clip
  int64_t max_skips_in_a_row = 20;  ///< after so many StepReport::diverged is true
  uint64_t seed = 0;                ///< of the random numbers in forward passes; 0 to 2^32 - 1
  double ema_decay = 0;             ///< of a moving average of the parameters; 0: no average
  SpikeOptions spikes{};            ///< a window whose loss or gradient norm is a spike is skipped
};

/// Throws ConfigError naming the option if a value makes no sense.
void validate(const EngineOptions& options);

/// What an engine counts.
struct EngineCounters {
  int64_t windows = 0;         ///< windows consumed
  int64_t updates = 0;         ///< updates applied
  int64_t skipped_total = 0;   ///< windows that changed nothing
  int64_t skips_in_a_row = 0;  ///< the last windows that were not finite or spikes
};

/// The state of an engine without its tensors. Together with parameters, buffers, moments and averages it is
/// enough to go on bit for bit.
struct EngineState {
  EngineCounters counters{};     ///< windows, updates and skips so far
  double loss_scale = 1;         ///< of the next window; 1 unless fp16
  int64_t num_good_updates = 0;  ///< finite updates in a row since the scale last changed
  int64_t micro_batch = 0;       ///< in use: smaller than asked for if memory ran out
  std::string
      first_non_finite{};  ///< of the skips in a row so far; empty: there are none, or it is not known
  SpikeHistory spikes{};   ///< what the next window is judged by
};

/// Asked before each micro-batch of a window, when `done` of `total` have gone through on this rank. True
/// ends the window there, on all ranks.
using GiveUp = std::function<bool(int64_t done, int64_t total)>;

/// What Engine::examine() found in a window.
struct Examination {
  std::string first_non_finite{};      ///< op and parameter; empty: all was finite
  std::vector<ModuleNorms> modules{};  ///< in the order of the parameters, as `rank` sees them
  int64_t rank = 0;                    ///< whose samples these are
};

/// Trains a task: each call of step() turns one window, which is all samples of an update, into one update.
/// Can be moved, not copied. Threads: one at a time. If the world has several ranks, all of them make the
/// same calls in the same order, and take the same decisions.
class Engine {
 public:
  /// An engine for `task`. The world must outlive it. Parameters of frozen groups stop requiring gradients.
  /// Throws ConfigError for a task that lacks something (validate(const Task&)), for options that make no
  /// sense, for parameters to train that are not fp32 (naming the first), for a module without parameters to
  /// train, and for an Optimizer::state() that no checkpoint can hold or restore.
  Engine(Task task, const EngineOptions& options, World& world);
  ~Engine();
  /// Moves the engine; only destruction and assignment may follow for the one moved from.
  Engine(Engine&&) noexcept;
  /// Likewise.
  Engine& operator=(Engine&&) noexcept;

  /// Consumes the window and makes one update of it. `window.batch` is as the data set stores it, on any
  /// device.
  ///
  /// Seeds the default generators of CPU and device for this window, and puts them back afterwards. What
  /// another thread draws from them meanwhile follows from that seed, and disturbs the window: draw samples
  /// from a generator of your own (Draw), and let one engine step at a time. Engines of one seed draw the
  /// same numbers. Puts the module into training mode. Waits for the device once, once more for the sum of
  /// the gradients if there are several ranks, once more then for a task with user state, and once more under
  /// fp16 if spikes are looked for. If gradients are not finite, only the scale and the counts change; if the
  /// weight of the window is 0, only the counts. The report says so. A loop that waits for a number of
  /// updates never ends on data of which every window has weight 0; Trainer refuses a whole epoch of them.
  ///
  /// If memory runs out on a rank, all ranks halve the micro-batch, for good, and begin the window again. If
  /// half would not be less (one sample, or two under batch norm), or the task is not divisible, throws Error
  /// (kOutOfMemory), and the engine is as before.
  ///
  /// Throws ConfigError for a weight that is negative or not finite, for a sparse gradient, and for user
  /// state that only some ranks have; and what the task throws. After an exception gradients are empty and
  /// autocast is off; if is_whole(), buffers and user state are as before, and the same window may be given
  /// again. The other ranks throw Error. After the first update it throws ConfigError if that changed the
  /// layout of Optimizer::state(); the window is consumed then. It also throws it, naming the parameter,
  /// where the module has another parameter than when the engine was made, or one was unfrozen since: it
  /// would never train. Make another engine then.
  ///
  /// `give_up` may end the window between two micro-batches, on all ranks if it does on one. Then everything
  /// is as before the call (StepOutcome::kGivenUp), and the same window may be given again.
  StepReport step(const Window& window, const GiveUp& give_up = {});

  /// The same for a window of your own tensors: inputs (n, ...), targets (n, ...). `epoch` only labels the
  /// report.
  StepReport step(const at::Tensor& inputs, const at::Tensor& targets, int64_t epoch = 0);

  /// Consumes the window without a forward pass. It counts as skipped; parameters, moments and scale stay.
  StepReport step_over(const Window& window);

  /// Runs forward and backward of the window as step() would do now, under an observer that finds values that
  /// are not finite. Changes and consumes nothing. It is several times slower than an update and needs more
  /// memory; if memory runs out, the result only says so. With `divisor`, which is the StepReport::divisor of
  /// that window, a rank may call it alone; without it, all ranks call it together.
  [[nodiscard]] Examination examine(const Window& window, std::optional<double> divisor = {});
  /// The same for the window that step() has consumed with this report. A rank may call it alone.
  [[nodiscard]] Examination examine(const Window& window, const StepReport& report);

  /// False if step() threw after it had begun to change the parameters, and if step() or examine() could not
  /// take buffers or user state back: the state belongs to no window then, and must not be saved.
  [[nodiscard]] bool is_whole() const;
  /// Counters, scale, micro-batch and history. Waits for the device. capture_engine() adds the tensors.
  /// Throws ConfigError naming the tensor if names, types or shapes of Optimizer::state() have changed since
  /// the engine was made.
  [[nodiscard]] EngineState state() const;
  /// Takes counters, scale, micro-batch and history over; the engine counts as whole then. The caller copies
  /// the tensors:
  /// optimizer().parameters(), optimizer().state(), averages() and the buffers of the module.
  /// restore_engine() does all of it.
  void restore(const EngineState& state);

  /// From the next update on the learning rate is that of a schedule of so many updates
  /// (LrSchedule::total_steps).
  void set_total_steps(int64_t total_steps);
  /// The learning rate of the next update.
  [[nodiscard]] double next_lr() const;
  /// Windows, updates and skips so far.
  [[nodiscard]] const EngineCounters& counters() const;
  /// The options as given. state().micro_batch is the micro-batch in use.
  [[nodiscard]] const EngineOptions& options() const;
  /// The task as given.
  [[nodiscard]] const Task& task() const;
  /// The optimizer with its parameters and its state.
  [[nodiscard]] const Optimizer& optimizer() const;
  /// The parameters that do not train: their group is frozen, or they require no gradient.
  [[nodiscard]] const NamedTensors& frozen() const;
  /// The moving averages under the names of the parameters. They share memory with the engine. Empty if
  /// EngineOptions::ema_decay is 0. PyTorch: torch.optim.swa_utils.AveragedModel with
  /// get_ema_multi_avg_fn(decay).
  [[nodiscard]] NamedTensors averages() const;
  /// Begins the averages anew, as copies of the parameters.
  void reset_averages();
  /// The device of the parameters.
  [[nodiscard]] at::Device device() const;

 private:
  friend class AveragesGuard;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Swaps the parameters of an engine with their moving averages, bit for bit, while it lives: to evaluate the
/// averages, or to write them to a file. Does nothing without averages.
class AveragesGuard {
 public:
  /// Swaps parameters and averages. The engine must outlive the guard.
  explicit AveragesGuard(Engine& engine);
  /// Swaps them back.
  ~AveragesGuard();
  AveragesGuard(const AveragesGuard&) = delete;
  AveragesGuard& operator=(const AveragesGuard&) = delete;

 private:
  Engine& engine_;
};

}  // namespace gradstep
