// Drift: what differs between a checkpoint's run and the run that wants to go on from it. Pure decisions.
#pragma once

#include <torch/version.h>

#include <cstdint>
#include <string>
#include <vector>

#include "gradstep/base/setting.h"
#include "gradstep/base/version.h"
#include "gradstep/checkpoint/checkpoint.h"

namespace gradstep {

struct Drift {
  std::string key{};  // of the config, "data", or what follows from several: "updates of the run (`epochs`,
                      // `max_steps`)"
  std::string before{};
  std::string now{};
  OnResume kind = OnResume::kFree;  // never kNotCompared
};

// What is compared, of the run that begins.
struct RunIdentity {
  const Settings& settings;
  int64_t global_batch = 0;
  int64_t planned_updates = 0;
  std::string dataset_fingerprint{};
  std::string eval_fingerprint{};
  std::string best_metric{};
  std::string version{gradstep::version()};
  std::string git_commit{gradstep::git_commit()};
  std::string torch_version{TORCH_VERSION};
};

// All that differs, in the order of the settings, free ones included. A setting that the checkpoint lacks had
// its default.
[[nodiscard]] std::vector<Drift> find_drift(const TrainState& before, const RunIdentity& now);

// Throws ConfigError naming each refused one with both values, unless accept_drift.
void refuse_drift(const std::vector<Drift>& drifts, const std::string& checkpoint, bool accept_drift);

// "lr was 0.001, is 0.0003"
[[nodiscard]] std::string describe(const Drift& drift);

}  // namespace gradstep
