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

/// How long a run is. It ends at whichever bound comes first. Without epochs, max_updates and max_seconds it
/// has one epoch.
struct JobLength {
  std::optional<int64_t> epochs{};       ///< passes over the training data
  std::optional<int64_t> max_updates{};  ///< updates applied
  double max_seconds = 0;                ///< since the Trainer was made; 0: no limit
  std::optional<int64_t> stop_after{};   ///< updates of this start; then it saves and leaves
};

/// When a run is evaluated, and which evaluation is the best. Needs DatasetPair::eval.
struct EvalPolicy {
  Interval interval{1, Interval::Unit::kEpochs};  ///< how often
  /// The value that says which evaluation is the best, under a name of EvalRow::named_values(): "val_loss",
  /// "val_acc", "ema_val_loss". "auto": the first metric of the task that has a direction, else the loss.
  std::string best_metric = "auto";
  int64_t early_stop_patience = 0;  ///< the run ends after so many evaluations without a better one; 0: off
};

/// When a run saves.
struct SavePolicy {
  Interval interval{1, Interval::Unit::kEpochs};  ///< how often
  int64_t keep = 3;                               ///< newest checkpoints, besides the best one; 0: all
  bool continue_on_error = false;  ///< if a checkpoint cannot be written: true goes on, false ends the run
  /// Seconds between a stop and the kill that follows it. If they are few, the checkpoint is saved and
  /// model.safetensors left out. 0: not known.
  double grace_seconds = 0;
};

/// What a run does after it has skipped a window.
enum class Reaction {
  kGoOn,     ///< takes the next window
  kStop,     ///< ends the run with Diverged
  kRollBack  ///< goes back to the newest checkpoint and steps over the window
};

/// What a run does if numbers go wrong.
struct TroublePolicy {
  Reaction on_not_finite = Reaction::kGoOn;  ///< after a window that is not finite
  Reaction on_spike = Reaction::kGoOn;       ///< after a spike; EngineOptions::spikes says what a spike is
  int64_t max_rollbacks = 3;                 ///< the next one ends the run with Diverged
};

/// Names for the plan. Empty ones are left out.
struct JobNames {
  std::string dataset{};           ///< "mnist in data/mnist"
  std::string eval_part{};         ///< "validation part of the training set"
  std::string model{};             ///< "mlp 784-256-10"
  std::string threads_reason{};    ///< why so many threads
  std::string precision_reason{};  ///< why this precision
  std::string warmup_reason{};     ///< why so many warm-up updates
};

/// What a training run is: task, data, options, length and policies as one value. Trainer runs it.
struct Job {
  Task task{};         ///< what to train, on the device
  DatasetPair data{};  ///< without DatasetPair::eval nothing is evaluated
  /// How to train. If schedule.total_steps is 0, the trainer fills it in. `seed` is also the seed of the
  /// order and the draws.
  EngineOptions engine{};
  int64_t global_batch = 0;  ///< samples of an update, over all ranks; 0: one micro-batch for each rank
  EpochOrder order{};        ///< of the samples; empty: shuffled by the seed
  int64_t epoch_size = 0;    ///< numbers in `order`; 0: the size of the training data
  int64_t num_workers = 1;   ///< threads that gather windows ahead; 0: none
  JobLength length{};        ///< when the run ends
  EvalPolicy eval{};         ///< when it is evaluated
  SavePolicy save{};         ///< when it saves
  TroublePolicy trouble{};   ///< what it does if numbers go wrong
  /// Resume although data, seed, length or a setting that is kRefused differ. Another optimizer, and
  /// parameters that were frozen before, begin with moments of 0.
  bool accept_drift = false;

  JobNames names{};  ///< for the plan
  /// Settings of your own that checkpoints keep and a resume compares, each key once: {{"width", "64"}}.
  /// Bytes that are not UTF-8 are replaced. settings_of() adds the engine options; a key of theirs here takes
  /// their place.
  Settings settings{};
  bool settings_are_complete = false;  ///< true: no engine option is added to `settings`. App has all of them
  /// What model files keep beside the weights, such as the sizes that a reader needs to build the module
  /// again.
  std::map<std::string, std::string> model_settings{};
};

/// The settings that a checkpoint of this job keeps: job.settings and, unless they are complete, all engine
/// options that are not among them, under the names that the flags of `gradstep train` have. An optimizer,
/// schedule or order of your own is "own".
[[nodiscard]] Settings settings_of(const Job& job);

/// Throws ConfigError naming what makes no sense in the job. Trainer calls it. The engine options are checked
/// by Engine.
void validate(const Job& job);

}  // namespace gradstep
