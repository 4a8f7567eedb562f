// Rows: what a run reports. Its plan, its windows and evaluations, what happens besides, and its end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gradstep/base/error.h"
#include "gradstep/base/step_report.h"

namespace gradstep {

/// What a run is going to do, known before its first update.
struct RunPlan {
  std::string dataset{};                                ///< name and folder
  int64_t train_samples = 0;                            ///< of an epoch
  int64_t eval_samples = 0;                             ///< of an evaluation; 0: nothing is evaluated
  std::string eval_part{};                              ///< "validation part of the training set"
  std::string model{};                                  ///< "mlp 784-256-10"
  int64_t num_parameters = 0;                           ///< numbers in all parameters, frozen ones included
  std::string device{};                                 ///< "cpu, 2 threads"
  std::string precision{};                              ///< "bf16"
  std::string precision_reason{};                       ///< why this precision: what the probe measured
  int64_t world_size = 1;                               ///< number of ranks
  int64_t micro_batch = 0;                              ///< samples of a full micro-batch
  int64_t num_micro_batches = 0;                        ///< of a full window, on rank 0
  int64_t global_batch = 0;                             ///< samples of an update over all ranks
  int64_t windows_per_epoch = 0;                        ///< the last one included
  int64_t last_window_samples = 0;                      ///< of the last window of an epoch
  int64_t total_updates = 0;                            ///< of the whole run; 0: no end
  std::string ends{};                                   ///< "after 3 epochs", "after 500 updates"
  std::vector<std::pair<int64_t, double>> lr_points{};  ///< (update, learning rate) at up to five points
  std::string schedule{};                               ///< "cosine, 100 warm-up updates, peak 0.001, min 0"
  std::string optimizer{};                              ///< "adamw, betas 0.9 0.999, eps 1e-08"
  int64_t decay_tensors = 0;                            ///< parameters that decay by `weight_decay`
  int64_t decay_parameters = 0;                         ///< numbers in them
  int64_t no_decay_tensors = 0;                         ///< parameters that do not decay
  int64_t no_decay_parameters = 0;                      ///< numbers in them
  double weight_decay = 0;                              ///< OptimizerOptions::weight_decay
  std::vector<std::string> groups{};  ///< "embed.*: learning rate x 0.1, 2 tensors (100 parameters)"
  int64_t checkpoint_bytes = 0;       ///< of the tensors of a checkpoint
  int64_t memory_bytes = 0;       ///< estimate: the process with data set and libraries, gradients, moments
  int64_t memory_free_bytes = 0;  ///< of the machine or its cgroup
  std::string output_dir{};       ///< where the run writes
};

/// The plan as several lines of text, each ended by a newline, aligned in two columns.
[[nodiscard]] std::string format_plan(const RunPlan& plan);

/// Event: the run goes on from a checkpoint.
struct Resumed {
  std::string from{};         ///< path of the checkpoint
  int64_t window = 0;         ///< windows consumed before it was written
  bool nothing_left = false;  ///< the run that it belongs to is finished
  /// Equal if all fields are equal.
  bool operator==(const Resumed&) const = default;
};

/// Event: a setting differs from the checkpoint's.
struct SettingChanged {
  std::string key{};     ///< Setting::key
  std::string before{};  ///< value in the checkpoint
  std::string now{};     ///< value of this start
  /// Equal if all fields are equal.
  bool operator==(const SettingChanged&) const = default;
};

/// Event: a checkpoint failed its checks, and an older one was used.
struct BrokenCheckpoint {
  std::string what{};  ///< which checkpoint, and what is wrong with it
  /// Equal if all fields are equal.
  bool operator==(const BrokenCheckpoint&) const = default;
};

/// Event: a checkpoint could not be written.
struct SaveFailed {
  std::string error{};  ///< one line
  /// Equal if all fields are equal.
  bool operator==(const SaveFailed&) const = default;
};

/// Event: memory ran out in a window, which was run again with a smaller micro-batch.
struct OutOfMemory {
  int64_t window = 0;       ///< StepReport::window
  int64_t micro_batch = 0;  ///< samples, from now on
  /// Equal if all fields are equal.
  bool operator==(const OutOfMemory&) const = default;
};

/// Event: the loss or the gradient norm leapt up, and the window was skipped.
struct Spike {
  int64_t window = 0;  ///< StepReport::window
  std::string what{};  ///< to_string() of the SpikeFinding
  /// Equal if all fields are equal.
  bool operator==(const Spike&) const = default;
};

/// Event: the run went back to a checkpoint. EventRow::update is the update it went back to; rows of later
/// updates come again.
struct RolledBack {
  int64_t window = 0;   ///< the window that went wrong and is stepped over
  std::string cause{};  ///< what was wrong with it
  std::string to{};     ///< path of the checkpoint
  /// Equal if all fields are equal.
  bool operator==(const RolledBack&) const = default;
};

/// Event: a window that was skipped can be examined with `gradstep replay`.
struct BlackBoxWritten {
  int64_t window = 0;  ///< StepReport::window
  std::string file{};  ///< path of the black box
  /// Equal if all fields are equal.
  bool operator==(const BlackBoxWritten&) const = default;
};

/// Event: a black box could not be written.
struct BlackBoxFailed {
  int64_t window = 0;   ///< StepReport::window
  std::string error{};  ///< one line
  /// Equal if all fields are equal.
  bool operator==(const BlackBoxFailed&) const = default;
};

/// Event: the run has become ten times slower than it was. Told once in a start.
struct SlowedDown {
  int64_t window = 0;  ///< StepReport::window
  std::string what{};  ///< how much slower, the cause as far as the kernel tells it, and what to do
  /// Equal if all fields are equal.
  bool operator==(const SlowedDown&) const = default;
};

/// Event: something that the user should know.
struct Warning {
  std::string text{};  ///< one line
  /// Equal if all fields are equal.
  bool operator==(const Warning&) const = default;
};

/// Event: the run ends with an error. Comes last, in the place of a RunEnd.
struct RunFailed {
  std::string error{};  ///< one line
  int64_t code = 0;     ///< exit code of a program that the error ends
  /// Equal if all fields are equal.
  bool operator==(const RunFailed&) const = default;
};

/// What can happen in a run besides windows and evaluations.
using Event = std::variant<Resumed, SettingChanged, BrokenCheckpoint, SaveFailed, OutOfMemory, Spike,
                           RolledBack, BlackBoxWritten, BlackBoxFailed, SlowedDown, Warning, RunFailed>;

/// One event, and where the run stood.
struct EventRow {
  int64_t update = 0;       ///< updates applied so far
  Event event = Warning{};  ///< what happened
  /// Equal if both fields are equal.
  bool operator==(const EventRow&) const = default;
};

/// One window: what the engine did, and what it cost.
struct WindowRow {
  StepReport step{};            ///< what Engine::step() returned
  int64_t window_of_epoch = 0;  ///< from 1
  int64_t samples = 0;          ///< consumed so far, over all ranks
  /// Samples of this window over all ranks / seconds since the last row, less evaluation and saving.
  double samples_per_s = 0;
  double time_data = 0;  ///< seconds waited for the loader
  double time_step = 0;  ///< seconds in Engine::step()
  int64_t memory = 0;    ///< bytes that the process holds (resident set), also if it trains on an accelerator
};

/// A metric of an evaluation.
struct MetricValue {
  std::string name;  ///< "acc"
  double value = 0;  ///< over all samples of the evaluation
  /// Equal if both fields are equal.
  bool operator==(const MetricValue&) const = default;
};

/// One evaluation.
struct EvalRow {
  int64_t update = 0;                  ///< updates applied so far
  int64_t epoch = 0;                   ///< of the last window consumed, from 0
  double val_loss = 0;                 ///< mean loss
  std::vector<MetricValue> metrics{};  ///< in the order of the task
  int64_t samples = 0;                 ///< of this evaluation, over all ranks
  double time_eval = 0;                ///< seconds
  bool best = false;                   ///< better than all before it
  /// Mean loss with the moving average of the parameters, if there is one.
  std::optional<double> ema_val_loss{};
  std::vector<MetricValue> ema_metrics{};  ///< likewise
  /// Equal if all fields are equal.
  bool operator==(const EvalRow&) const = default;

  /// Every value under the name that rows and EvalPolicy::best_metric use: val_loss, val_NAME, ema_val_loss,
  /// ema_val_NAME.
  [[nodiscard]] std::vector<MetricValue> named_values() const;
  /// The value of that name; nothing if there is none.
  [[nodiscard]] std::optional<double> value(const std::string& name) const;
  /// Sets the value of that name: the reverse of named_values(). Returns false if no value can have that
  /// name.
  bool set_value(const std::string& name, double number);
};

/// What a run is, before its first row.
struct RunStart {
  std::vector<std::pair<std::string, std::string>> settings{};  ///< key and value, as in config.toml
  RunPlan plan{};                                               ///< what the run is going to do
  int64_t world_size = 1;                                       ///< number of ranks
  std::string resumed_from{};                                   ///< path of the checkpoint; empty: a new run
  int64_t first_update = 0;                                     ///< updates applied before this start
};

/// Why a run ended.
enum class EndReason {
  kDone,       ///< all updates are made
  kEarlyStop,  ///< evaluations did not get better any more
  kStopped,    ///< it was asked to stop; RunEnd::stopped_by says by what
  kStopAfter,  ///< the updates of this start are made
  kMaxTime,    ///< the time of this start is over
};

/// How a run ended.
struct RunEnd {
  int64_t update = 0;                   ///< updates applied
  int64_t total_updates = 0;            ///< of the whole run; 0: no end
  int64_t samples = 0;                  ///< consumed, over all ranks
  int64_t skipped_total = 0;            ///< windows that changed nothing
  double seconds = 0;                   ///< of training, evaluation included
  EndReason reason = EndReason::kDone;  ///< why it ended
  ExitCode stopped_by = ExitCode::kOk;  ///< the code of the signal if the reason is kStopped
  std::optional<EvalRow> last_eval{};   ///< the last evaluation, if there was one
  std::optional<EvalRow> best_eval{};   ///< the best evaluation, if there was one
  std::string best_metric{};            ///< the value by which it is the best: "val_acc"
  std::string model_path{};             ///< of model.safetensors; empty: none was written
  bool resumable = false;               ///< true: a later start can resume the run from a checkpoint
};

}  // namespace gradstep
