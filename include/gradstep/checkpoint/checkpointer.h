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

/// Where a Checkpointer saves, and how much it keeps.
struct CheckpointerOptions {
  std::string output_dir{};  ///< folder of the run
  int64_t keep = 3;          ///< newest checkpoints, besides the best one; 0: all
};

/// What else a save writes.
struct SaveRequest {
  bool best = false;          ///< it is the best so far: it is kept, and best.safetensors is written too
  bool export_model = false;  ///< model.safetensors is written too
};

/// What became of a save.
struct SaveOutcome {
  int64_t update = 0;        ///< updates applied when save() was called
  uint64_t bytes = 0;        ///< on disk, exports included
  double seconds = 0;        ///< from save() until it was durable
  double stall_seconds = 0;  ///< of these, the seconds that save() blocked the caller
  std::string error{};       ///< empty: it is durable; else one line, as CheckpointError says it
  bool best = false;         ///< SaveRequest::best
  bool diverged = false;     ///< the error: a tensor of the model is not finite, so nothing may be saved
};

/// Saves the state of a run in the background. save() blocks the caller only while it copies the state in
/// memory; a thread writes it. Threads: one at a time may call it.
class Checkpointer {
 public:
  /// Saves into options.output_dir. The file system must outlive it. Cleans up after a run that was killed:
  /// removes what it left half written, and renames a checkpoint back that was moved aside, unless another is
  /// in its place. REQUIRES: the caller holds the lock of the output folder (OutputDir). Throws
  /// CheckpointError.
  Checkpointer(FileSystem& file_system, CheckpointerOptions options);
  /// Waits for the save in flight.
  ~Checkpointer();
  Checkpointer(const Checkpointer&) = delete;
  Checkpointer& operator=(const Checkpointer&) = delete;

  /// Waits for the save in flight, copies the state and returns; a thread writes the copy. Synchronises the
  /// device. The memory of the copy is kept for the next time; if there is no memory for a copy, the caller
  /// waits for the writing.
  ///
  /// The exports come first (best.safetensors and model.safetensors, each with its -ema.safetensors twin if
  /// the state has averages), then the checkpoint, then the deletion of old ones. Reports that
  /// state.report_positions names in the output folder are synced before the checkpoint appears. Throws
  /// nothing: outcomes() has the errors.
  void save(const TrainState& state, const SaveRequest& request = {});
  /// Notes that this state was read from the folder and need not be written there again: a save() of it makes
  /// the exports only.
  void note_saved(const TrainState& state);
  /// Waits for the save in flight.
  void wait();
  /// True while the thread writes.
  [[nodiscard]] bool in_flight() const;
  /// The saves that ended since the last call, in order.
  [[nodiscard]] std::vector<SaveOutcome> outcomes();
  /// Seconds that the slowest of the last saves took; nothing before the first one.
  [[nodiscard]] std::optional<double> save_seconds() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradstep
