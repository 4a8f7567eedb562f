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

struct ProcessOptions {
  std::string device = "auto";        ///< auto, cpu, cuda or cuda:N
  int64_t threads = 0;                ///< that compute; 0: the cores within the cgroup quota
  int64_t num_workers = 1;            ///< that will gather data; they must be startable, too
  std::string memory_limit = "auto";  ///< of tensors on the CPU: auto (what is free), none, or bytes: "8g"
  bool deterministic = false;         ///< only operations that give the same bits in each run
};

/// Sets the number of threads, the memory limit and deterministic algorithms of this process, and returns the
/// device that the options name. A program calls it once, before it makes tensors; the library never does.
/// Throws ConfigError for a device that is not there and for threads that cannot be started.
[[nodiscard]] c10::Device configure_process(const ProcessOptions& options = {});

/// Runs a job. All ranks make the same calls, with the same checkpoints and folders. An error of one rank
/// ends the run on all of them.
class Trainer {
 public:
  /// Takes the job over, makes its engine and its plan; no update is made, and nothing of the process is
  /// changed. The world must outlive the trainer. Throws ConfigError for a job that makes no sense.
  Trainer(Job job, World& world);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  [[nodiscard]] const RunPlan& plan() const;
  /// What resume() found that the user should be told before the run starts; one line each, mostly none.
  [[nodiscard]] const std::vector<std::string>& warnings() const;

  /// Goes on from a checkpoint (newest_checkpoint(), or read_checkpoint()): the settings of the job are
  /// compared with the checkpoint's, key by key. What makes the run go another way becomes one of warnings();
  /// what makes it another run throws ConfigError naming each, unless the job accepts drift. Throws
  /// CheckpointError naming a tensor that does not fit. REQUIRES: before run().
  void resume(const FoundCheckpoint& checkpoint);

  /// Whether the run that resume() took over is finished: run() makes no update then, and changes no file but
  /// the rows.
  [[nodiscard]] bool nothing_left() const;

  // Looks at the output folder before the first update, and removes what a killed run left half written.
  // Returns what the user should know. Throws CheckpointError where no checkpoint finds room, with both
  // numbers. run() does it where it was not done before.
  std::vector<std::string> prepare_output(FileSystem& file_system, const std::string& output_dir);

  // Trains to the end, or until `stop` is requested, or a limit of the settings is reached; then the update
  // under way is finished. Writes checkpoints, model.safetensors (and best.safetensors, where evaluations
  // were made) into output_dir, whose lock the caller holds; an empty output_dir: no file is written. Rows go
  // to `sinks` on rank 0. Whatever ends the run but divergence leaves a checkpoint of its last whole window.
  // Throws Diverged after the last row (nothing is saved then), CheckpointError where a checkpoint
  // cannot be written, and what `sinks` throw.
  RunEnd run(Sink& sinks, const StopToken& stop, FileSystem& file_system, const std::string& output_dir);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradstep
