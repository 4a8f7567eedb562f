// RunConfig: every setting of a training run, one field a flag. Filled from flags, environment, config file
// and defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradstep/base/setting.h"
#include "gradstep/config/flags.h"

namespace gradstep {

enum class SampleOrder { kShuffled, kSequential };
// What a window that goes wrong leads to. Only spikes can be left unlooked for.
enum class OnTrouble { kOff, kSkip, kStop, kRollBack };
enum class OnSaveError { kStop, kContinue };

struct RunConfig {
  // Data
  std::string dataset{};    // one of the program's data sets
  double val_fraction = 0;  // of the training set, to evaluate on; 0: the evaluation part of the data
  SampleOrder order = SampleOrder::kShuffled;
  int64_t workers = 1;
  // Model
  std::string model{};  // one of the program's models
  // Length and batch
  std::optional<int64_t> epochs{};     // run_length() says what none means
  std::optional<int64_t> max_steps{};  // updates
  double max_time = 0;                 // seconds since the start of the process; 0: no limit
  int64_t batch_size = 32;             // micro-batch, per rank
  int64_t grad_accum_steps = 4;
  std::optional<int64_t> global_batch_size{};  // over all ranks; exclusive with grad_accum_steps
  // Optimizer
  std::string opt = "adamw";  // adamw, sgd
  double lr = 1e-3;
  double min_lr = 0;
  double weight_decay = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.9;
  bool nesterov = false;
  bool decay_all = false;
  std::string param_groups = "none";      // none, or as parse_param_groups reads it
  std::string sched = "cosine";           // cosine, linear, constant
  std::optional<int64_t> warmup_steps{};  // updates; none: chosen by the length
  double clip_grad = 0;                   // 0: off
  double ema = 0;                         // decay of the moving average of the parameters; 0: off
  // Numbers that go wrong
  OnTrouble on_nonfinite = OnTrouble::kSkip;  // never kOff
  OnTrouble on_spike = OnTrouble::kOff;
  double spike_zscore = 6;     // standard deviations
  int64_t spike_window = 128;  // windows
  int64_t max_rollbacks = 3;
  // Precision and machine
  std::string precision = "auto";  // auto, fp32, bf16, fp16
  std::string matmul = "auto";     // fp32 matrix products on a CPU: auto, torch, onednn
  uint64_t seed = 0;
  bool deterministic = false;
  std::string device = "auto";  // auto, cpu, cuda, cuda:N
  int64_t threads = 0;          // 0: cores within the cgroup quota
  std::string memory_limit =
      "auto";  // of tensors on the CPU: auto (what is free at start), none, or bytes: "8g"
  // Checkpoints
  std::string resume = "none";  // none, auto, or the path of a checkpoint or a run
  bool accept_drift = false;    // resume although data, seed, batch, model, total or schedule differ
  Interval save_interval{1, Interval::Unit::kEpochs};
  int64_t keep_checkpoints = 3;      // newest ones, and the best; 0: all
  std::string best_metric = "auto";  // auto, or a value of the rows: val_acc, ema_val_loss
  OnSaveError on_save_error = OnSaveError::kStop;
  double grace = 0;                     // seconds from a stop signal to the kill; 0: not known
  std::optional<int64_t> stop_after{};  // updates of this start, after which it saves and leaves
  // Output
  std::string output_dir{};  // empty: runs/<dataset>-<model>-<time>
  Interval eval_interval{1, Interval::Unit::kEpochs};
  int64_t early_stop_patience = 0;  // evaluations without a better one by best_metric; 0: off
  int64_t log_interval = 20;        // windows; 0: no lines
  std::string report_to = "none";   // none, or names with commas between them: tensorboard
  bool quiet = false;
  bool dry_run = false;

  // Samples of one update over all ranks.
  [[nodiscard]] int64_t global_batch(int64_t world_size) const {
    return global_batch_size ? *global_batch_size : batch_size * grad_accum_steps * world_size;
  }
  // The warm-up asked for; else 100 updates, or a tenth of a shorter run. total_updates: 0 is not known.
  [[nodiscard]] int64_t warmup_steps_of(int64_t total_updates) const;
  bool operator==(const RunConfig&) const = default;
};

// Throws ConfigError, one line naming flag, value and cure, for a value out of range or a combination that
// makes no sense. Needs neither data nor device. What the library checks is not checked here: options of the
// engine (validate_engine() in app/make_job.h) and the best metric.
void validate(const RunConfig& config);

// The text of <output-dir>/config.toml: every setting as `key = value`, with the name of the program and the
// version and git commit of gradstep in its first lines. `train --config` reads it back to the same settings.
[[nodiscard]] std::string config_toml(const std::vector<std::pair<FlagInfo, std::string>>& settings,
                                      const std::string& program, const std::string& version,
                                      const std::string& git_commit);

}  // namespace gradstep
