// Drift: what differs between a checkpoint's run and the run that wants to go on from it. Pure decisions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradstep/run/train_state.h"
#include "run/flag_table.h"

namespace gradstep {

struct Drift {
  std::string key{};  // of the config, "data", or what follows from several: "updates of the run (--epochs,
                      // --max-steps)"
  std::string before{};
  std::string now{};
  OnResume kind = OnResume::kFree;  // never kNotCompared
};

// What is compared, of the run that begins. Its config is settled (take_settled).
struct RunIdentity {
  const RunConfig& config;
  int64_t global_batch = 0;
  int64_t total_updates = 0;
  std::string dataset_fingerprint{};
};

// The settings of the run that goes on: "auto" for precision and matmul becomes what the checkpoint's run
// used, since a new measurement might choose otherwise.
[[nodiscard]] RunConfig take_settled(RunConfig asked, const RunConfig& before);

// All that differs, in the order of the flag table, free ones included.
[[nodiscard]] std::vector<Drift> find_drift(const TrainState& before, const RunIdentity& now);

// Throws ConfigError naming each refused one with both values and the flag to go on, unless that was given
// (cases C9).
void refuse_drift(const std::vector<Drift>& drifts, const std::string& checkpoint, bool accept_drift);

// "lr was 0.001, is 0.0003"
[[nodiscard]] std::string describe(const Drift& drift);

}  // namespace gradstep
