// Engine: one call of step() turns one window into one update. Accumulation, precision, scale, check, clip,
// optimizer, schedule.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gradstep/base/step_report.h"
#include "gradstep/data/batch.h"
#include "gradstep/dist/grad_sync.h"
#include "gradstep/dist/world.h"
#include "gradstep/model/task.h"
#include "gradstep/step/buffer_snapshot.h"
#include "gradstep/step/ema.h"
#include "gradstep/step/grad_scaler.h"
#include "gradstep/step/lr_schedule.h"
#include "gradstep/step/optimizer.h"
#include "gradstep/step/precision.h"
#include "gradstep/step/spike.h"

namespace gradstep {

struct EngineOptions {
  OptimizerOptions optimizer{};
  /// Makes an optimizer of your own; optimizer.groups still holds. Empty: the kind that `optimizer` names.
  OptimizerFactory make_optimizer{};
  LrSchedule schedule{};
  Precision precision = Precision::kFp32;
  GradScalerOptions scaler{};  // used by fp16 only
  int64_t micro_batch =
      32;  // samples that go through the model at once; changes memory and speed, not the update
  double clip_grad = 0;             // global norm; 0: off
  int64_t max_skips_in_a_row = 20;  // then StepReport::diverged
  uint64_t seed = 0;                // of the windows' random numbers
  double ema_decay = 0;             // moving average of the parameters; 0: off
  SpikeOptions spikes{};            // a window whose loss or norm is one is skipped
};

/// Throws ConfigError naming the option for a value that makes no sense.
void validate(const EngineOptions& options);

// What the engine must remember between updates, besides parameters, moments and scale.
struct EngineCounters {
  int64_t windows = 0;  // consumed
  int64_t updates = 0;  // applied
  int64_t skipped_total = 0;
  int64_t skips_in_a_row = 0;
};

// All of an engine but its tensors: with parameters, buffers, moments and averages, enough to go on bit for
// bit.
struct EngineState {
  EngineCounters counters{};
  double loss_scale = 1;
  int64_t num_good_updates = 0;    // towards the scale's next growth
  int64_t micro_batch = 0;         // in use: smaller than asked for after an out of memory
  std::string first_non_finite{};  // in the row of skips that goes on; empty: there is none, or not known
  SpikeHistory spikes{};
};

// What a second look at a window showed.
struct Examination {
  std::string first_non_finite{};      // op and parameter; empty: all was finite
  std::vector<ModuleNorms> modules{};  // in the order of the parameters, as this rank sees them
};

class Engine {
 public:
  // The world must outlive the engine. Throws ConfigError for parameters that are not fp32 (naming the first,
  // case D4), for a module without parameters, and for a schedule that makes no sense.
  Engine(Task task, const EngineOptions& options, World& world);

  // Consumes the window: `window.batch` as the data set stores it, on any device. Puts the module into
  // training mode. One wait for the device, and one more in GradSync where there are several ranks. A window
  // whose gradients are not finite changes nothing but the scale and the counts; the report says so. After an
  // exception of the task (or of tensors that do not fit) gradients are empty, buffers are as before,
  // autocast is off, and the same window may be given again. Where memory runs out the micro-batch is halved,
  // for good, and the window begun again; where half would be no less (one sample, or two under batch norm)
  // Error (out of memory) is thrown, and the engine is as before.
  StepReport step(const Window& window);

  // For windows made by hand: inputs (n, ...), targets (n, ...). `epoch` only labels the report.
  StepReport step(const at::Tensor& inputs, const at::Tensor& targets, int64_t epoch = 0);

  // Consumes the window without looking at it: parameters, moments and scale stay; it counts as skipped.
  StepReport step_over(const Window& window);

  // Forward and backward of the window as step() would do them now, under an observer; nothing is changed,
  // nothing is consumed. Several times slower than an update. Needs more memory than step() does: where there
  // is none the result is empty but for words that say so. Ranks call it together.
  [[nodiscard]] Examination examine(const Window& window);

  // False where step() threw when the parameters had moved already: such a state is of no window.
  [[nodiscard]] bool is_whole() const { return is_whole_; }
  [[nodiscard]] EngineState state() const;
  // Takes over counters, scale, micro-batch and history; the tensors are the caller's to copy, into what
  // optimizer().parameters(), optimizer().state(), ema().tensors() and the module's buffers name.
  void restore(const EngineState& state);

  // Learning rate of the next update.
  [[nodiscard]] double next_lr() const { return options_.schedule.at(counters_.updates + 1); }
  [[nodiscard]] const EngineCounters& counters() const { return counters_; }
  [[nodiscard]] const EngineOptions& options() const { return options_; }
  [[nodiscard]] const Task& task() const { return task_; }
  [[nodiscard]] const Optimizer& optimizer() const { return *optimizer_; }
  /// Parameters that rest: their group is frozen, or they require no gradient.
  [[nodiscard]] const NamedTensors& frozen() const { return frozen_; }
  [[nodiscard]] const GradScaler& scaler() const { return scaler_; }
  [[nodiscard]] EmaWeights& ema() { return ema_; }
  [[nodiscard]] at::Device device() const { return device_; }

 private:
  double total_weight(const Window& window);
  // What every report of a window begins and ends with; the second consumes the window.
  StepReport begin_report(const Window& window);
  void end_report(StepReport& report);
  // accumulate() with ever smaller micro-batches, until the window fits into memory.
  std::vector<at::Tensor> accumulate_within_memory(const Window& window, StepReport& report);
  // Forward and backward of the whole window: gradients of loss_sum * factor, summed. Fills each
  // micro-batch's loss sum. False: memory ran out. That, and an exception, leave no gradient, and the buffers
  // as they were saved.
  bool accumulate(const Window& window, double factor, std::vector<at::Tensor>& loss_sums);
  std::vector<at::Tensor> run_micro_batches(const Window& window);
  at::Tensor forward_backward(const Batch& batch);
  // From summed gradients to changed parameters, unless the window is not finite or a spike; fills what the
  // report says about it.
  void optimize(const std::vector<at::Tensor>& loss_sums, StepReport& report);
  // The only wait for the device: fills loss, norm and skipped, and mirrors the scale.
  void read_back(const std::vector<at::Tensor>& loss_sums, StepReport& report);
  double sum_over_ranks(double value);
  void note_update();
  void note_skip(const Window& window, StepReport& report);
  // examine(), with the scale and divisor that step() had; the buffers are saved already.
  Examination examine_as(const Window& window, double loss_scale, double divisor);
  void give_up();  // a window half done: no gradients, buffers as before
  void zero_grad();

  Task task_;
  EngineOptions options_;
  World& world_;
  NamedTensors frozen_;
  std::unique_ptr<Optimizer> optimizer_;
  at::Device device_;
  GradScaler scaler_;
  GradSync grad_sync_;
  BufferSnapshot buffers_;
  EmaWeights ema_;
  SpikeDetector spikes_;
  EngineCounters counters_;
  bool has_batch_norm_;
  bool is_whole_ = true;
  double host_scale_;             // mirror of the scaler's scale
  std::string first_non_finite_;  // of the current row of skips
  at::Tensor seed_grad_;          // 0-dim fp32: d(scaled mean loss)/d(loss sum)
  at::Tensor norm_;               // 0-dim fp32: of this update
  at::Tensor found_inf_;          // 0-dim fp32: 1 when this update is skipped
};

}  // namespace gradstep
