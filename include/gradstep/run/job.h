// Job: everything that a training run is, as one value. Trainer runs it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gradstep/base/setting.h"
#include "gradstep/data/dataset.h"
#include "gradstep/data/loader.h"
#include "gradstep/model/task.h"
#include "gradstep/step/engine.h"

namespace gradstep {

/// How long a run is. It ends at whichever bound comes first; with no bound at all, after one epoch.
struct JobLength {
  std::optional<int64_t> epochs{};       ///< passes over the training data
  std::optional<int64_t> max_updates{};  ///< applied
  double max_seconds = 0;                ///< since the start of the process; 0: no limit
  std::optional<int64_t> stop_after{};   ///< updates of this start, after which it saves and leaves
};

/// When and by what a run is measured. Needs DatasetPair::test.
struct EvalPolicy {
  Interval interval{1, Interval::Unit::kEpochs};
  /// A value of EvalRow: "val_loss", "val_acc", "ema_val_loss". "auto": the first metric of the task.
  std::string best_metric = "auto";
  int64_t early_stop_patience = 0;  ///< evaluations without a better one after which the run ends; 0: off
};

/// When a run saves.
struct SavePolicy {
  Interval interval{1, Interval::Unit::kEpochs};
  int64_t keep = 3;             ///< newest checkpoints, besides the best one; 0: all
  bool go_on_on_error = false;  ///< when a checkpoint cannot be written: try again at the next one
  double grace_seconds = 0;     ///< from a stop to the kill; 0: not known
};

/// What else happens when a window is skipped.
enum class Reaction { kGoOn, kStop, kRollBack };

struct TroublePolicy {
  Reaction on_not_finite = Reaction::kGoOn;
  Reaction on_spike = Reaction::kGoOn;  ///< EngineOptions::spikes says what a spike is
  int64_t max_rollbacks = 3;
};

/// Names for the plan. Empty ones are left out.
struct JobNames {
  std::string dataset{};    ///< "mnist in data/mnist"
  std::string eval_part{};  ///< "test set"
  std::string model{};      ///< "mlp 784-256-10"
  std::string precision_reason{};
};

struct Job {
  Task task{};         ///< on the device
  DatasetPair data{};  ///< without a test set nothing is evaluated
  /// The trainer fills in schedule.total_steps where it is 0. `seed` is that of the order and the draws, too.
  EngineOptions engine{};
  int64_t global_batch = 0;  ///< samples of an update over all ranks; 0: a micro-batch a rank
  EpochOrder order{};        ///< empty: shuffled by the seed
  int64_t epoch_size = 0;    ///< numbers in `order`; 0: the size of the training data
  int64_t num_workers = 1;   ///< threads that gather windows ahead; 0: none
  JobLength length{};
  EvalPolicy eval{};
  SavePolicy save{};
  TroublePolicy trouble{};
  bool accept_drift = false;  ///< resume although data, seed, length or a setting that is kRefused differ

  JobNames names{};
  /// What checkpoints keep of this run. Empty: what follows from the engine options.
  Settings settings{};
  /// What model files keep beside the weights, such as the sizes from which the module is built again.
  std::map<std::string, std::string> model_settings{};
};

/// The settings that a checkpoint of this job keeps: job.settings, or if that is empty, seed, optimizer,
/// schedule, precision and micro-batch under the names that the program's flags have.
[[nodiscard]] Settings settings_of(const Job& job);

}  // namespace gradstep
