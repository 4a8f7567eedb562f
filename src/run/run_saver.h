// RunSaver: when a run saves, whether there is room and time for it, and what happens when a save fails.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradstep/report/sink.h"
#include "gradstep/run/checkpointer.h"
#include "gradstep/run/run_config.h"

namespace gradstep {

class RunSaver {
 public:
  // The file system must outlive it. checkpoint_bytes: of one, as planned. An empty output_dir: nothing is
  // ever saved.
  RunSaver(FileSystem& file_system, const RunConfig& config, const std::string& output_dir,
           int64_t checkpoint_bytes);

  // Before update 1: throws CheckpointError where not even one checkpoint finds room (case F10); returns what
  // the user should know: no room for all of them, a grace or a time limit shorter than a save takes.
  [[nodiscard]] std::vector<std::string> check();

  [[nodiscard]] bool enabled() const { return checkpointer_.has_value(); }
  // A state that was read from this folder need not be written to it again.
  void note_saved(const TrainState& state) { saved_ = key_of(state); }
  // Returns once the state is copied. One that is saved already is not written again, but the exports are.
  // Outcomes come by report().
  void save(const TrainState& state, const SaveRequest& request);
  // Tells `sinks` of saves that failed since the last call. Throws CheckpointError for one where
  // --on-save-error stop says so, and for any with `at_end`, after waiting for the last one.
  void report(Sink& sinks, bool at_end);
  void wait();
  // What a save takes: measured, or estimated by the disk's speed before the first one.
  [[nodiscard]] double expected_seconds() const;

 private:
  struct Key {
    int64_t update = -1, windows = -1, evaluated = -1;
    bool operator==(const Key&) const = default;
  };
  static Key key_of(const TrainState& state);

  FileSystem& file_system_;
  const RunConfig config_;
  std::string output_dir_;
  int64_t checkpoint_bytes_;
  std::optional<Checkpointer> checkpointer_;
  std::optional<double> estimated_seconds_;
  Key saved_;
};

}  // namespace gradstep
