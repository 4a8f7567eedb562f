// TrainState: everything a run must remember to go on as if nothing had happened. A checkpoint is this, on
// disk.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradstep/base/interval.h"
#include "gradstep/checkpoint/model_file.h"
#include "gradstep/data/batch.h"
#include "gradstep/report/sink.h"
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

// Tensors (the live ones), counters, scale and micro-batch of an engine. For a loop of your own: `next`,
// `samples` and whatever else you want back are yours to fill in. Synchronises the device.
[[nodiscard]] TrainState capture_engine(Engine& engine);

// The model with its averages in place of the parameters, sharing their memory; buffers as they are. A tied
// parameter has its average under all its names.
[[nodiscard]] NamedTensors with_averages(const TrainState& state);

// Copies parameters, buffers, moments and averages by name, then counters, scale and micro-batch. Averages
// that the state lacks begin as the restored parameters. Throws CheckpointError naming the tensor that does
// not fit; the engine is unchanged then. `where` begins the message.
void restore_engine(const std::string& where, const TrainState& state, Engine& engine);

}  // namespace gradstep
