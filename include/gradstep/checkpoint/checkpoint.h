// Checkpoints: everything that a run must remember to go on as if nothing had happened, as a value and on
// disk. The format is described in docs/checkpoint_format.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradstep/base/setting.h"
#include "gradstep/checkpoint/model_file.h"
#include "gradstep/data/loader.h"
#include "gradstep/io/file_system.h"
#include "gradstep/report/rows.h"
#include "gradstep/step/engine.h"

namespace gradstep {

/// A window that is not trained on, because a rollback went back to before it. Its row has the numbers that
/// it had then.
struct SteppedOver {
  int64_t window = 0;    ///< as StepReport::window: from 1
  double loss = 0;       ///< StepReport::loss
  double grad_norm = 0;  ///< StepReport::grad_norm
  /// Equal if all fields are equal.
  bool operator==(const SteppedOver&) const = default;
};

/// Everything that a run must remember to go on bit for bit: its tensors, where it is, how good it is, and
/// what it is, so that a change is noticed. In a state to be saved the tensors are the live ones; in one that
/// was read they are its own, on the CPU.
struct TrainState {
  NamedTensors model{};      ///< parameters, then buffers, by their PyTorch state_dict names
  int64_t num_buffers = 0;   ///< the last so many of `model` are buffers, which may hold infinities
  NamedTensors optimizer{};  ///< as Optimizer::state()
  NamedTensors ema{};        ///< as Engine::averages(); empty if there are none
  UserState user{};          ///< what Task::user_state gives, or a loop of your own fills in

  EngineState engine{};                     ///< as Engine::state()
  Position next{};                          ///< of the next window to consume, whatever is prefetched
  int64_t samples = 0;                      ///< consumed so far, over all ranks
  double seconds = 0;                       ///< of training so far, over all starts
  double evals_due = 0;                     ///< evaluation intervals that have passed
  double saves_due = 0;                     ///< save intervals that have passed
  std::vector<SteppedOver> stepped_over{};  ///< windows to leave out
  int64_t num_rollbacks = 0;                ///< rollbacks so far
  std::vector<std::pair<int64_t, double>> scale_history{};  ///< (window, loss scale from it on), oldest first

  std::optional<EvalRow> last_eval{};  ///< the last evaluation, if there was one
  std::optional<EvalRow> best_eval{};  ///< the best evaluation, if there was one
  int64_t evals_without_best = 0;      ///< evaluations since the best one, for early stopping

  std::map<std::string, std::string> settings{};  ///< Setting::key and text
  int64_t asked_micro_batch = 0;                  ///< as the options say; `engine` has the one in use
  Interval eval_interval{};                       ///< EvalPolicy::interval
  Interval save_interval{};                       ///< SavePolicy::interval
  std::string best_metric{};                      ///< the value by which best_eval is the best: "val_acc"
  ModelInfo info{};                               ///< goes into the metadata of the model files
  int64_t world_size = 1;                         ///< number of ranks
  int64_t global_batch = 0;                       ///< samples of an update, over all ranks
  int64_t total_updates = 0;                      ///< T of the learning rate; 0: no end
  int64_t planned_updates = 0;        ///< T by the settings alone: another one where drift was accepted
  std::string dataset_fingerprint{};  ///< Dataset::fingerprint() of the training data
  std::string eval_fingerprint{};     ///< that of the evaluation data; empty: there are none
  std::map<std::string, std::string> report_positions{};  ///< of the sinks: Sink::note_position()
  std::string version{};                                  ///< version() of the gradstep that wrote it
  std::string git_commit{};                               ///< git_commit() of the gradstep that wrote it
  std::string torch_version{};                            ///< version of LibTorch that it was built with
};

/// The state of an engine for a loop of your own: its live tensors, counters, scale and micro-batch, and what
/// Task::user_state gives. Fill in `next`, `samples` and whatever else you want back. Synchronises the
/// device.
[[nodiscard]] TrainState capture_engine(Engine& engine);

/// The model of the state with the averages in place of the parameters; buffers stay as they are. Shares the
/// memory of the averages. A tied parameter has its average under all its names.
[[nodiscard]] NamedTensors with_averages(const TrainState& state);

/// Puts an engine into the state: copies parameters, buffers, moments and averages by name, then counters,
/// scale and micro-batch. If the state has no averages, they begin as copies of the restored parameters.
/// Calls Task::restore_user_state. Throws CheckpointError naming the tensor that does not fit, and what that
/// function throws; the engine is unchanged then. `where` begins the message.
///
/// With `other_moments` the optimizer may be another one, or train other parameters: moments that the state
/// lacks begin at 0, and those that only the state has are dropped. Without it that holds for
/// Optimizer::is_optional() alone.
void restore_engine(const std::string& where, const TrainState& state, Engine& engine,
                    bool other_moments = false);

/// The number of the format that is written. Readers refuse a higher one.
inline constexpr int64_t kCheckpointFormat = 1;

/// The folder of the checkpoints of a run: OUTPUT_DIR/checkpoints.
[[nodiscard]] std::string checkpoints_dir(const std::string& output_dir);
/// The name of a checkpoint: "step-00000120" for update 120.
[[nodiscard]] std::string checkpoint_name(int64_t update);
/// The update of a checkpoint of that name; nothing if it is not the name of a checkpoint.
[[nodiscard]] std::optional<int64_t> parse_checkpoint_name(const std::string& name);

/// The updates of the checkpoints of a run, whole or not, oldest first. Empty if there is no folder. Throws
/// CheckpointError if the folder cannot be read.
[[nodiscard]] std::vector<int64_t> list_checkpoints(const std::string& output_dir);

/// Writes the state as a checkpoint into checkpoints_dir(output_dir), whole or not at all: into a temporary
/// folder, whose files are synced before it is renamed. Replaces a checkpoint of the same name. Returns the
/// bytes written. Synchronises the device. Throws CheckpointError saying what failed (with needed and free
/// bytes if the disk is full), and Diverged naming a tensor of the model that is not finite. What was there
/// before is intact then.
uint64_t write_checkpoint(FileSystem& file_system, const std::string& output_dir, const TrainState& state);

/// Compares sizes and hashes of all files of the checkpoint at `path` with its manifest. Throws
/// CheckpointError naming the file at fault.
void verify_checkpoint(const std::string& path);

/// Verifies and reads the checkpoint at `path`. Nothing in the files is trusted: no size, offset, name or
/// count in them makes it ask for more memory than the files have bytes. Throws CheckpointError.
[[nodiscard]] TrainState read_checkpoint(const std::string& path);
/// The same without the tensors, which are left empty: reads and verifies only state.json and the header of
/// the model.
[[nodiscard]] TrainState read_checkpoint_summary(const std::string& path);

/// A checkpoint that newest_checkpoint() has read.
struct FoundCheckpoint {
  std::string path{};                 ///< its folder
  TrainState state{};                 ///< its content
  std::vector<std::string> broken{};  ///< newer ones that are broken: what is wrong with each, one line
};
/// Reads the newest checkpoint of the run that verifies; nothing if the run has no checkpoint. Falls back to
/// a checkpoint that an interrupted save renamed aside. Throws CheckpointError if all checkpoints are broken,
/// naming each, and if the newest has a newer format.
[[nodiscard]] std::optional<FoundCheckpoint> newest_checkpoint(const std::string& output_dir);

/// One thing in which two states differ.
struct StateDifference {
  std::string what{};    ///< "optimizer fc1.weight.exp_avg", "engine loss_scale"
  std::string detail{};  ///< "131 of 200704 values, the first at 17: 0.25 and 0.5, at most 3.1e-05 apart"
};
/// Compares everything that a resume must bring back, bit by bit (NaN equals NaN). Returns the differences,
/// tensors first; empty: none. Times, settings, paths, versions and report positions do not count.
[[nodiscard]] std::vector<StateDifference> compare_states(const TrainState& a, const TrainState& b);

}  // namespace gradstep
