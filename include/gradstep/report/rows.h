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

struct RunPlan {
  std::string dataset{};  // name and folder
  int64_t train_samples = 0;
  int64_t eval_samples = 0;
  std::string eval_part{};  // "test set" or "validation part of the training set"
  std::string model{};      // "mlp 784-256-10"
  int64_t num_parameters = 0;
  std::string device{};     // "cpu, 2 threads"
  std::string precision{};  // "bf16"
  std::string precision_reason{};
  int64_t world_size = 1;
  int64_t micro_batch = 0;
  int64_t num_micro_batches = 0;  // in a full window, on rank 0
  int64_t global_batch = 0;
  int64_t windows_per_epoch = 0;
  int64_t last_window_samples = 0;  // of an epoch
  int64_t total_updates = 0;
  std::string ends{};                                   // "after 3 epochs", "after 500 updates"
  std::vector<std::pair<int64_t, double>> lr_points{};  // (update, lr) at five points
  std::string schedule{};                               // "cosine, 100 warm-up updates, peak 0.001, min 0"
  std::string optimizer{};                              // "adamw, betas 0.9 0.999, eps 1e-08"
  int64_t decay_tensors = 0, decay_parameters = 0;
  int64_t no_decay_tensors = 0, no_decay_parameters = 0;
  double weight_decay = 0;
  std::vector<std::string> groups{};  // "embed.*: learning rate x 0.1, 2 tensors (100 parameters)"
  int64_t checkpoint_bytes = 0;
  int64_t memory_bytes = 0;       // estimate: the process with data set and libraries, gradients, moments
  int64_t memory_free_bytes = 0;  // of the machine or its cgroup
  std::string output_dir{};
};

// Several lines of text, each ended by \n, aligned in two columns.
[[nodiscard]] std::string format_plan(const RunPlan& plan);

/// The run goes on from a checkpoint.
struct Resumed {
  std::string from{};         ///< path of the checkpoint
  int64_t window = 0;         ///< windows consumed before it was written
  bool nothing_left = false;  ///< the run that it belongs to is finished
  bool operator==(const Resumed&) const = default;
};

/// A setting differs from the checkpoint's.
struct SettingChanged {
  std::string key{};
  std::string before{};
  std::string now{};
  bool operator==(const SettingChanged&) const = default;
};

/// A checkpoint failed its checks, and an older one was used.
struct BrokenCheckpoint {
  std::string what{};
  bool operator==(const BrokenCheckpoint&) const = default;
};

/// A checkpoint could not be written.
struct SaveFailed {
  std::string error{};
  bool operator==(const SaveFailed&) const = default;
};

/// Memory ran out in a window; it was run again with a smaller micro-batch.
struct OutOfMemory {
  int64_t window = 0;
  int64_t micro_batch = 0;  ///< samples, from now on
  bool operator==(const OutOfMemory&) const = default;
};

/// The loss or the gradient norm leapt up, and the window was skipped.
struct Spike {
  int64_t window = 0;
  std::string what{};
  bool operator==(const Spike&) const = default;
};

/// The run went back to a checkpoint. EventRow::update is the update it went back to; rows of later updates
/// come again.
struct RolledBack {
  int64_t window = 0;   ///< that went wrong and is stepped over
  std::string cause{};  ///< what was wrong with it
  std::string to{};     ///< path of the checkpoint
  bool operator==(const RolledBack&) const = default;
};

/// A window that was skipped can be examined with `gradstep replay`.
struct BlackBoxWritten {
  int64_t window = 0;
  std::string file{};
  bool operator==(const BlackBoxWritten&) const = default;
};

/// A black box could not be written.
struct BlackBoxFailed {
  int64_t window = 0;
  std::string error{};
  bool operator==(const BlackBoxFailed&) const = default;
};

/// Something that the user should know.
struct Warning {
  std::string text{};
  bool operator==(const Warning&) const = default;
};

using Event = std::variant<Resumed, SettingChanged, BrokenCheckpoint, SaveFailed, OutOfMemory, Spike,
                           RolledBack, BlackBoxWritten, BlackBoxFailed, Warning>;

/// One event, and where the run stood.
struct EventRow {
  int64_t update = 0;  ///< updates applied so far
  Event event = Warning{};
  bool operator==(const EventRow&) const = default;
};

// One window: what the engine did, and what it cost.
struct WindowRow {
  StepReport step{};
  int64_t window_of_epoch = 0;  // from 1
  int64_t samples = 0;          // cumulative, over all ranks
  // This window's samples over all ranks / wall time since the last row, less evaluation and saving.
  double samples_per_s = 0;
  double time_data = 0;  // seconds waited for the loader
  double time_step = 0;  // seconds in Engine::step
  int64_t memory = 0;    // bytes the process holds (resident set), on an accelerator too
};

/// A metric of an evaluation.
struct MetricValue {
  std::string name;  ///< "acc"
  double value = 0;
  bool operator==(const MetricValue&) const = default;
};

/// One evaluation.
struct EvalRow {
  int64_t update = 0;
  int64_t epoch = 0;  ///< of the last window consumed, from 0
  double val_loss = 0;
  std::vector<MetricValue> metrics{};  ///< in the order of the task
  int64_t samples = 0;
  double time_eval = 0;  ///< seconds
  bool best = false;     ///< better than all before it
  /// Of the moving average of the parameters, if there is one.
  std::optional<double> ema_val_loss{};
  std::vector<MetricValue> ema_metrics{};
  bool operator==(const EvalRow&) const = default;

  /// Every value with the name that rows and --best-metric use: val_loss, val_<metric>, ema_val_loss,
  /// ema_val_<metric>.
  [[nodiscard]] std::vector<MetricValue> named_values() const;
  /// One of them; nothing if there is none of that name.
  [[nodiscard]] std::optional<double> value(const std::string& name) const;
  /// Sets one of them, the reverse of named_values(). False: no such name.
  bool set_value(const std::string& name, double number);
};

/// What a run is, before its first row.
struct RunStart {
  std::vector<std::pair<std::string, std::string>> settings{};  ///< key and value, as in config.toml
  RunPlan plan{};
  int64_t world_size = 1;
  std::string resumed_from{};  ///< path of the checkpoint; empty: a new run
  int64_t first_update = 0;    ///< updates applied before this start
};

/// Why a run ended.
enum class EndReason {
  kDone,       ///< all updates are made
  kEarlyStop,  ///< evaluations did not get better any more
  kStopped,    ///< by RunEnd::stopped_by
  kStopAfter,  ///< the updates of this start are made
  kMaxTime,    ///< the time of this start is over
};

// How a run ended.
struct RunEnd {
  int64_t update = 0;
  int64_t total_updates = 0;
  int64_t samples = 0;
  int64_t skipped_total = 0;
  double seconds = 0;  // of training, evaluation included
  EndReason reason = EndReason::kDone;
  ExitCode stopped_by = ExitCode::kOk;  // the signal's, with kStopped
  std::optional<EvalRow> last_eval{};
  std::optional<EvalRow> best_eval{};
  std::string best_metric{};  // by which the best is the best: "val_acc"
  std::string model_path{};   // empty: none written
  bool can_go_on = false;     // from a checkpoint, by --resume auto
};

}  // namespace gradstep
