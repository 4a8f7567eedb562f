// Pure decisions about a run: how long it is, when something is due, what its plan says.
#pragma once

#include <cstdint>

#include "gradstep/data/dataset.h"
#include "gradstep/data/sampler.h"
#include "gradstep/report/plan.h"
#include "gradstep/run/run_config.h"
#include "gradstep/step/engine.h"

namespace gradstep {

// Length of a run. Either bound may be absent; a run ends at whichever comes first.
struct RunLength {
  int64_t total_updates = 0;  // T of the schedule
  int64_t max_updates = 0;    // updates applied; 0: no bound
  int64_t max_windows = 0;    // windows consumed; 0: no bound (then further epochs are begun)
  [[nodiscard]] bool reached(const EngineCounters& counters) const {
    return (max_updates > 0 && counters.updates >= max_updates) ||
           (max_windows > 0 && counters.windows >= max_windows);
  }
};
// T = max_steps, or epochs * windows of an epoch, or the smaller of both (docs/design.md, section 4, line
// 12).
[[nodiscard]] RunLength run_length(const RunConfig& config, int64_t windows_per_epoch);

// Remembers when something was last done, and says when it is due again.
class DueTimer {
 public:
  DueTimer(const Interval& interval, int64_t windows_per_epoch)
      : interval_(interval), windows_per_epoch_(windows_per_epoch) {}
  // Called once after each window. updates, windows: counted so far; seconds: since the run began.
  [[nodiscard]] bool due(int64_t updates, int64_t windows, double seconds);

 private:
  Interval interval_;
  int64_t windows_per_epoch_;
  double periods_ = 0;  // whole intervals passed
};

// Samples of the largest micro-batch: a window may hold fewer than --batch-size. Of rank 0, which has the
// most.
[[nodiscard]] int64_t largest_micro_batch(const RunConfig& config, const Sampler& sampler,
                                          int64_t world_size);

// Bytes that a run on the CPU takes at the least: parameters, gradients and moments, windows read ahead, and
// what the largest micro-batch keeps.
[[nodiscard]] double least_memory(const RunConfig& config, const Sampler& sampler, const DatasetSpec& spec,
                                  int64_t world_size);
// Throws Error (out of memory) where that is more than there is: Linux hands out memory that it has not, and
// kills the process without a word once it is used.
void check_memory(double needed_bytes, int64_t free_bytes);

[[nodiscard]] EngineOptions engine_options(const RunConfig& config, int64_t total_updates);

// Fills what follows from settings, sampler and model: batch, length, schedule, groups, bytes.
void fill_plan(const RunConfig& config, const Sampler& sampler, const RunLength& length, const Engine& engine,
               const World& world, RunPlan& plan);

}  // namespace gradstep
