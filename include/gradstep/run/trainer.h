// Trainer: one training run from settings to the last row: data, model, engine, evaluation, best model, end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gradstep/base/stop.h"
#include "gradstep/dist/world.h"
#include "gradstep/io/file_system.h"
#include "gradstep/report/plan.h"
#include "gradstep/report/sink.h"
#include "gradstep/run/run_config.h"

namespace gradstep {

class Trainer {
 public:
  // Reads the data, builds the model on the device and settles precision and plan; no update is made. Sets
  // the process's number of threads. The world must outlive the trainer. Throws ConfigError and DataError.
  Trainer(const RunConfig& config, World& world);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  [[nodiscard]] const RunPlan& plan() const;
  // The settings, with what "auto" became for precision and matmul: with these a run can be repeated bit for
  // bit, while another measurement might choose differently.
  [[nodiscard]] RunConfig settled_config() const;
  // What the user should be told before the run starts, such as an emulated precision; one line each, mostly
  // none.
  [[nodiscard]] const std::vector<std::string>& warnings() const;

  // Trains to the end, or until `stop` is requested; then the update under way is finished. Writes
  // model.safetensors (and best.safetensors, by val_acc, where evaluations were made) into output_dir; an
  // empty output_dir: no file is written. Rows go to `sinks` on rank 0. Throws Diverged after the last row
  // (no model is written then), CheckpointError where the model cannot be written, and what `sinks` throw.
  RunEnd run(Sink& sinks, const StopToken& stop, FileSystem& file_system, const std::string& output_dir);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradstep
