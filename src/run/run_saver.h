// RunSaver: when a run saves, whether there is room and time for it, and what happens when a save fails.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/disk_room.h"
#include "gradstep/checkpoint/checkpointer.h"
#include "gradstep/report/sinks.h"
#include "gradstep/run/job.h"

namespace gradstep {

class RunSaver {
 public:
  // The file system must outlive it. `bytes`: of one save, `num_saves`: in the whole run, as planned. An
  // empty output_dir: nothing is ever saved.
  RunSaver(FileSystem& file_system, const SavePolicy& policy, double max_seconds,
           const std::string& output_dir, const SaveBytes& bytes, int64_t num_saves);

  // Before update 1: throws CheckpointError if not even one checkpoint fits; returns what the user should
  // know: no room for all of them, a grace or a time limit shorter than a save takes.
  [[nodiscard]] std::vector<std::string> check();

  [[nodiscard]] bool enabled() const { return checkpointer_.has_value(); }
  // A state that was read from this folder need not be written to it again.
  void note_saved(const TrainState& state);
  // Returns once the state is copied. Outcomes come by report().
  void save(const TrainState& state, const SaveRequest& request);
  // Tells `sinks` of saves that failed since the last call; `at_end` after waiting for the last one.
  void report(Sink& sinks, bool at_end);
  // Throws what was reported: CheckpointError for a failed save unless SavePolicy::continue_on_error, and at
  // the end for the last one in any case; Diverged if the state is not finite.
  void throw_failure();
  [[nodiscard]] bool has_failed() const { return failure_ != nullptr; }
  // The update of the last best evaluation whose save has failed since the last call, if any.
  [[nodiscard]] std::optional<int64_t> take_lost_best() { return std::exchange(lost_best_, std::nullopt); }
  void wait();
  // What a save takes: measured, or estimated by the disk's speed before the first one.
  [[nodiscard]] double expected_seconds() const;

 private:
  FileSystem& file_system_;
  const SavePolicy policy_;
  const double max_seconds_;
  const std::string output_dir_;
  const SaveBytes bytes_;
  const int64_t num_saves_;
  std::optional<Checkpointer> checkpointer_;
  std::optional<double> estimated_seconds_;
  std::optional<int64_t> lost_best_;
  std::exception_ptr failure_;  // that the run ends for
  std::string last_error_;      // of the last save that ended; empty: it is durable
};

}  // namespace gradstep
