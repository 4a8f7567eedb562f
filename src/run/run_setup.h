// RunSetup: all that stands before the first update: device, data, model, precision, engine, plan.
#pragma once

#include <string>
#include <vector>

#include "gradstep/data/dataset.h"
#include "gradstep/data/sampler.h"
#include "gradstep/model/task.h"
#include "gradstep/report/plan.h"
#include "gradstep/report/sink.h"
#include "gradstep/run/model_file.h"
#include "gradstep/run/run_config.h"
#include "gradstep/step/engine.h"
#include "gradstep/step/precision_probe.h"
#include "run/best_tracker.h"
#include "run/planner.h"

namespace gradstep {

struct RunSetup {
  // Sets the process's threads and its memory for tensors, reads the data, builds the model and settles the
  // precision. The world must outlive it. Throws ConfigError, DataError and Error (out of memory).
  RunSetup(const RunConfig& asked, World& ranks);

  // The settings as a checkpoint keeps them: with the number of threads that "as many as there are cores"
  // became, for it changes the bits.
  [[nodiscard]] RunConfig config_with_threads() const;

  // What goes into the model files, at the update that the engine has reached.
  [[nodiscard]] ModelInfo model_info() const;

  // What sinks learn before the first row. `resumed_from` is the checkpoint's path; empty: a new run.
  [[nodiscard]] RunStart run_start(const std::string& resumed_from) const;

  RunConfig config;  // precision and matmul as really used
  World& world;
  at::Device device;
  DatasetPair data;
  Sampler sampler;
  RunLength length;
  Task task;
  PrecisionChoice precision;
  BestMetric best_metric;
  Engine engine;
  RunPlan plan;
  std::vector<std::string> warnings;
};

}  // namespace gradstep
