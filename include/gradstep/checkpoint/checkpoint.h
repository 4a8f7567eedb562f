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

// A window that is not trained on: a rollback came back to before it. What it looked like then goes into its
// row.
struct SteppedOver {
  int64_t window = 0;  // as StepReport::window: from 1
  double loss = 0;
  double grad_norm = 0;
  bool operator==(const SteppedOver&) const = default;
};

struct TrainState {
  // Tensors. In a state to be saved they are the live ones; in one that was read they are its own, on the
  // CPU.
  NamedTensors model{};      // parameters, then buffers, by their PyTorch state_dict names
  NamedTensors optimizer{};  // as Optimizer::state()
  NamedTensors ema{};        // averages by parameter name; empty without --ema
  UserState user{};          // Task::user_state, or filled by a loop of your own

  // Where the run is
  EngineState engine{};
  Position next{};       // of the window to come: consumed, never prefetched
  int64_t samples = 0;   // consumed, over all ranks
  double seconds = 0;    // of training so far, over all starts
  double evals_due = 0;  // evaluation and save intervals that have passed
  double saves_due = 0;
  std::vector<SteppedOver> stepped_over{};
  int64_t num_rollbacks = 0;
  std::vector<std::pair<int64_t, double>> scale_history{};  // (window, loss scale from there on), newest last

  // How good it is
  std::optional<EvalRow> last_eval{};
  std::optional<EvalRow> best_eval{};
  int64_t evals_without_best = 0;

  // What it is: with this much a change is noticed
  std::map<std::string, std::string> settings{};  // Setting::key and text
  int64_t asked_micro_batch = 0;                  // EngineState has the one in use
  Interval eval_interval{};
  Interval save_interval{};
  std::string best_metric{};  // by which best_eval is the best
  ModelInfo info{};           // goes into the metadata of the model files
  int64_t world_size = 1;
  int64_t global_batch = 0;   // samples of an update
  int64_t total_updates = 0;  // of the whole run; 0: no end
  std::string dataset_fingerprint{};
  std::map<std::string, std::string> report_positions{};  // of the sinks: Sink::note_position
  std::string version{}, git_commit{}, torch_version{};   // that wrote it
};

// Tensors (the live ones), counters, scale and micro-batch of an engine, and what Task::user_state gives. For
// a loop of your own: `next`, `samples` and whatever else you want back are yours to fill in. Synchronises
// the device.
[[nodiscard]] TrainState capture_engine(Engine& engine);

// The model with its averages in place of the parameters, sharing their memory; buffers as they are. A tied
// parameter has its average under all its names.
[[nodiscard]] NamedTensors with_averages(const TrainState& state);

// Copies parameters, buffers, moments and averages by name, then counters, scale and micro-batch. Averages
// that the state lacks begin as the restored parameters. Calls Task::restore_user_state. Throws
// CheckpointError naming the tensor that does not fit, and what that function throws; the engine is unchanged
// then. `where` begins the message.
void restore_engine(const std::string& where, const TrainState& state, Engine& engine);

// The format that is written. Readers refuse a newer one.
inline constexpr int64_t kCheckpointFormat = 1;

// <output-dir>/checkpoints
[[nodiscard]] std::string checkpoints_dir(const std::string& output_dir);
// 120 -> "step-00000120", and back; nothing for any other name.
[[nodiscard]] std::string checkpoint_name(int64_t update);
[[nodiscard]] std::optional<int64_t> parse_checkpoint_name(const std::string& name);

// Updates of the checkpoints of a run, whole or not, oldest first. Throws CheckpointError where the folder
// cannot be read; none where there is no folder.
[[nodiscard]] std::vector<int64_t> list_checkpoints(const std::string& output_dir);

// Which checkpoints may go once another is durable: all but the newest `keep` (0: all are kept) and the best
// one.
[[nodiscard]] std::vector<int64_t> retention(const std::vector<int64_t>& existing, int64_t keep,
                                             std::optional<int64_t> best);

// Writes the state as <output-dir>/checkpoints/<name>, whole or not at all: into a temporary folder, each
// file and the folder synced, renamed, the parent synced. A checkpoint of that name that is there already is
// replaced. Returns the bytes written. Synchronises the device. Throws CheckpointError saying what failed
// (and needed and free bytes where the disk is full), and Diverged naming a model tensor that is not finite.
// What was there before is intact then.
uint64_t write_checkpoint(FileSystem& file_system, const std::string& output_dir, const TrainState& state);

// About the bytes that it takes, never too few by more than the state's lists; asks no device.
[[nodiscard]] uint64_t checkpoint_bytes(const TrainState& state);

// After a run was killed: removes what it left half written, and gives a checkpoint that was moved aside its
// name back where none is in its place. REQUIRES: the caller holds the lock of the output folder. Throws
// CheckpointError.
void tidy_checkpoints(FileSystem& file_system, const std::string& output_dir);

// Sizes and hashes of all files against the manifest. Throws CheckpointError naming the file at fault.
void verify_checkpoint(const std::string& path);

// Verifies and reads all of it. Throws CheckpointError. Nothing in the files is trusted: neither sizes,
// offsets, names nor counts ask for memory beyond the size of the files.
[[nodiscard]] TrainState read_checkpoint(const std::string& path);
// All but the tensors, which are left empty; only state.json and the header of the model are read and
// verified.
[[nodiscard]] TrainState read_checkpoint_summary(const std::string& path);

struct FoundCheckpoint {
  std::string path{};
  TrainState state{};
  std::vector<std::string> broken{};  // newer ones that were passed over: what is wrong with each, one line
};
// The newest checkpoint of the run that verifies, read; nothing where there is none at all. Throws
// CheckpointError, naming each, when there are some and all of them are broken, and when the newest
// is of a newer format. One that a kill left moved aside counts, where that in its place is not whole.
[[nodiscard]] std::optional<FoundCheckpoint> newest_checkpoint(const std::string& output_dir);

// Why `stored` tensors cannot be copied into `live` ones: the first that has another name, type or shape, or
// that there is on one side only; order counts, for state belongs to names. Empty: they can.
[[nodiscard]] std::string check_parameters(const NamedTensors& stored, const NamedTensors& live);

// Each thing in which two states differ, tensors first, bit by bit (NaN equals NaN), and everything that
// `resume` must bring back; empty: nothing. Times, settings, paths, versions and report positions do not
// count.
struct StateDifference {
  std::string what{};    // "optimizer fc1.weight.exp_avg", "engine loss_scale"
  std::string detail{};  // "131 of 200704 values, the first at 17: 0.25 and 0.5, at most 3.1e-05 apart"
};
[[nodiscard]] std::vector<StateDifference> compare_states(const TrainState& a, const TrainState& b);

}  // namespace gradstep
