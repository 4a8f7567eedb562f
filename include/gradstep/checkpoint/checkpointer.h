// Checkpointer: saves a run's state while the run goes on. The caller waits for the copy of the tensors only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/io/file_system.h"

namespace gradstep {

struct CheckpointerOptions {
  std::string output_dir{};
  int64_t keep = 3;  // newest ones; the best is kept besides. 0: all
};

struct SaveRequest {
  bool best = false;  // it is the best so far: exempt from retention, and best.safetensors is written too
  bool export_model = false;  // model.safetensors too
};

// What became of a save.
struct SaveOutcome {
  int64_t update = 0;
  uint64_t bytes = 0;        // on disk, exports included
  double seconds = 0;        // from save() to durable
  double stall_seconds = 0;  // that save() took of it
  std::string error{};       // empty: it is durable; else one line, as CheckpointError says it
  bool best = false;         // as asked
  bool diverged = false;     // the error: a tensor of the model is not finite, so nothing may be saved
};

class Checkpointer {
 public:
  // The file system must outlive it. Removes temporary folders that a killed run left behind. REQUIRES: the
  // caller holds the lock of the output folder.
  Checkpointer(FileSystem& file_system, CheckpointerOptions options);
  ~Checkpointer();  // waits
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  // Waits for the save in flight, copies the state (tensors into memory that is kept for the next time;
  // synchronises the device) and returns; a thread writes it. Exports (best.safetensors, model.safetensors,
  // each with its -ema.safetensors twin where the state has averages) come first, then the checkpoint, then
  // retention. Reports named in state.report_positions that lie in the output folder are synced
  // before the checkpoint appears. Errors are kept for outcomes(); none is thrown. One thread may call these.
  void save(const TrainState& state, const SaveRequest& request = {});
  // A state that was read from this folder need not be written there again: a save() of it makes the exports
  // only.
  void note_saved(const TrainState& state);
  // Until nothing is in flight.
  void wait();
  [[nodiscard]] bool in_flight() const;
  // Those that ended since the last call, in order.
  [[nodiscard]] std::vector<SaveOutcome> outcomes();
  // Seconds the slowest recent save took; before the first one, nothing.
  [[nodiscard]] std::optional<double> save_seconds() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradstep
