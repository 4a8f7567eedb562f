// Trainer: one training run from a job to its last row: loop, evaluation, checkpoints, best model, end.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gradstep/base/stop.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/dist/world.h"
#include "gradstep/io/file_system.h"
#include "gradstep/report/rows.h"
#include "gradstep/report/sinks.h"
#include "gradstep/run/job.h"

namespace gradstep {

/// What configure_process() sets.
struct ProcessOptions {
  std::string device = "auto";        ///< auto, cpu, cuda or cuda:N
  int64_t threads = 0;                ///< threads that compute; 0: the cores within the cgroup quota
  int64_t num_workers = 1;            ///< threads that will gather data; checked to be startable
  std::string memory_limit = "auto";  ///< for tensors on the CPU: auto (what is free), none, or bytes: "8g"
  bool deterministic = false;         ///< only operations that give the same bits in each run
};

/// Sets the number of threads, the memory limit and deterministic algorithms of this process, and returns the
/// device that the options name. A program calls it once, before it makes tensors; the library never does.
/// Throws ConfigError for a device that is not there and for threads that cannot be started.
[[nodiscard]] c10::Device configure_process(const ProcessOptions& options = {});

/// Runs a job: training, evaluation, checkpoints, resume, best model, early stopping, reports. Reads no
/// flags, prints nothing, and changes nothing of the process; Engine::step() seeds the default generators for
/// the time of a window. All ranks make the same calls, with the same checkpoints and folders; an error of
/// one rank ends the run on all of them. Threads: one at a time.
class Trainer {
 public:
  /// Takes the job over and makes its engine and its plan, but no update. The world must outlive the trainer.
  /// Throws ConfigError for a job that makes no sense.
  Trainer(Job job, World& world);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// What the run is going to do.
  [[nodiscard]] const RunPlan& plan() const;
  /// What resume() found that the user should know before the run starts: one line each, mostly none.
  [[nodiscard]] const std::vector<std::string>& warnings() const;

  /// Goes on from a checkpoint, which newest_checkpoint() or read_checkpoint() gives. Compares the settings
  /// of the job with those of the checkpoint, key by key. A change that is kWarned becomes one of warnings().
  /// Throws ConfigError naming each change that is kRefused, unless the job accepts drift, and
  /// CheckpointError naming a tensor that does not fit, or if another rank brings a checkpoint of another
  /// window. REQUIRES: all ranks call it, and run() was not called.
  void resume(const FoundCheckpoint& checkpoint);

  /// Finds the newest checkpoint of the folder and goes on from it, as newest_checkpoint() and resume() do.
  /// Returns false if the folder has none: the run is a new one. Throws CheckpointError if the ranks have not
  /// found the same, and what those two throw; an error on one rank is an error on all.
  bool resume_newest(const std::string& output_dir);

  /// True if the run that resume() took over is finished. run() then makes no update, and changes no file but
  /// the rows.
  [[nodiscard]] bool nothing_left() const;

  /// Looks at the output folder before the first update, and removes what a killed run left half written.
  /// Returns what the user should know, one line each; run() passes it on to the sinks. Throws
  /// CheckpointError with needed and free bytes if no checkpoint finds room. run() does it unless it was done
  /// before.
  std::vector<std::string> prepare_output(FileSystem& file_system, const std::string& output_dir);

  /// Trains to the end of the job, or until `stop` is requested; then it finishes the update under way.
  /// Writes checkpoints, model.safetensors and, if it evaluates, best.safetensors into output_dir, whose lock
  /// (OutputDir) the caller holds. If output_dir is empty, writes no file. Rows go to `sinks` on rank 0.
  ///
  /// However the run ends, it leaves a checkpoint of its last whole window, unless it diverged, a sink lost
  /// rows, or an update failed halfway. Throws Diverged after the last row (nothing is saved then),
  /// CheckpointError if a checkpoint cannot be written, Error (kOutOfMemory) if one sample does not fit into
  /// memory, ConfigError if it was called before or output_dir has checkpoints of a run that was not resumed,
  /// and what task, data set and sinks throw.
  RunEnd run(Sink& sinks, const StopToken& stop, FileSystem& file_system, const std::string& output_dir);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradstep
