// Pure decisions about a run: how long it is, when something is due, what its plan says.
#pragma once

#include <cstdint>

#include "gradstep/data/dataset.h"
#include "gradstep/data/sampler.h"
#include "gradstep/report/plan.h"
#include "gradstep/run/run_config.h"
#include "gradstep/step/engine.h"

namespace gradstep {

// How far a run is.
struct Elapsed {
  int64_t updates = 0;  // applied
  double epochs = 0;    // consumed
  double seconds = 0;   // of training, over all starts
};

// Length of a run. Each bound may be absent; a run ends at whichever comes first.
struct RunLength {
  int64_t total_updates = 0;  // T of the schedule; 0: no end
  int64_t max_updates = 0;    // updates applied; 0: no bound
  int64_t max_epochs = 0;     // epochs consumed; 0: no bound (then further epochs are begun)
  [[nodiscard]] bool reached(const Elapsed& elapsed) const {
    return (max_updates > 0 && elapsed.updates >= max_updates) ||
           (max_epochs > 0 && elapsed.epochs >= static_cast<double>(max_epochs));
  }
};
// T = max_steps, or epochs * windows of an epoch, or the smaller of both (docs/design.md, section 4, line
// 12). With max_time alone there is no end but that.
[[nodiscard]] RunLength run_length(const RunConfig& config, int64_t windows_per_epoch);

// Says when something is due. What was done is told to it, so that what could not be done stays due.
class DueTimer {
 public:
  explicit DueTimer(const Interval& interval) : interval_(interval) {}
  [[nodiscard]] bool due(const Elapsed& elapsed) const { return periods(elapsed) > done_; }
  // Nothing is due any more until the next interval has passed.
  void mark_done(const Elapsed& elapsed) { done_ = periods(elapsed); }

  // Whole intervals that had passed when it was last done: for a checkpoint.
  [[nodiscard]] double done() const { return done_; }
  void restore(double done) { done_ = done; }

 private:
  [[nodiscard]] double periods(const Elapsed& elapsed) const;

  Interval interval_;
  double done_ = 0;
};

// Checkpoints that the whole run will make, about: those by interval in updates or epochs, and the last one.
[[nodiscard]] int64_t planned_saves(const RunConfig& config, const RunLength& length,
                                    int64_t windows_per_epoch);

// Samples of the largest micro-batch: a window may hold fewer than --batch-size. Of rank 0, which has the
// most.
[[nodiscard]] int64_t largest_micro_batch(const RunConfig& config, const Sampler& sampler,
                                          int64_t world_size);

// Bytes that a run on the CPU takes at the least: parameters, gradients, moments and the copy that is saved,
// windows read ahead, and what one sample keeps.
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
