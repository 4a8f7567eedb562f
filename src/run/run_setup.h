// RunSetup: a job with all that follows from it before the first update: order, length, engine, plan.
#pragma once

#include <map>
#include <string>

#include "gradstep/checkpoint/model_file.h"
#include "gradstep/data/loader.h"
#include "gradstep/report/rows.h"
#include "gradstep/report/sinks.h"
#include "gradstep/run/job.h"
#include "gradstep/step/engine.h"
#include "run/best_tracker.h"
#include "run/planner.h"

namespace gradstep {

struct RunSetup {
  // The world must outlive it. Throws ConfigError for a job that makes no sense.
  RunSetup(Job of, World& ranks);

  // What goes into the model files, at the update that the engine has reached.
  [[nodiscard]] ModelInfo model_info() const;
  // Setting::key and text.
  [[nodiscard]] std::map<std::string, std::string> setting_texts() const;
  // What sinks are told before the first row; resumed_from: the checkpoint's path, empty: a new run.
  [[nodiscard]] RunStart run_start(const std::string& resumed_from) const;

  Job job;
  World& world;
  at::Device device;
  Sampler sampler;
  RunLength length;
  BestMetric best_metric;
  Settings settings;                // in UTF-8
  std::string dataset_fingerprint;  // likewise, of the training data
  Engine engine;
  RunPlan plan;
};

}  // namespace gradstep
