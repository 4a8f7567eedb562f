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

  // From the next update on the learning rate is that of a run of so many updates, unless the schedule has a
  // length of its own.
  void set_total_updates(int64_t total_updates);
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
  int64_t
      planned_updates;  // the length by the settings; length.total_updates changes where drift is accepted
  BestMetric best_metric;
  Settings settings;                // in UTF-8
  std::string dataset_fingerprint;  // likewise, of the training data
  std::string eval_fingerprint;     // empty without evaluation data
  Engine engine;
  RunPlan plan;
};

}  // namespace gradstep
