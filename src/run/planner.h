// Pure decisions about a run: how long it is, when something is due, what its plan says.
#pragma once

#include <cstdint>
#include <string>

#include "gradstep/data/dataset.h"
#include "gradstep/data/loader.h"
#include "gradstep/report/rows.h"
#include "gradstep/run/job.h"
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
// T = max_updates, or epochs * windows of an epoch, or the smaller of both (docs/design.md, section 4, line
// 12). With max_seconds alone there is no end but that.
[[nodiscard]] RunLength run_length(const JobLength& length, int64_t windows_per_epoch);

// Updates still to come for a run that has made `updates` and whose next window is `next`, if none is
// skipped. 0 without an end.
[[nodiscard]] int64_t updates_left(const RunLength& length, const Position& next, int64_t updates,
                                   int64_t windows_per_epoch);

// Says when something is due. The caller tells it what was done; what could not be done stays due.
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
[[nodiscard]] int64_t planned_saves(const Interval& interval, const RunLength& length,
                                    int64_t windows_per_epoch);

// Samples of the largest micro-batch: a window may hold fewer. Of rank 0, which has the most.
[[nodiscard]] int64_t largest_micro_batch(const Task& task, int64_t micro_batch, const Sampler& sampler,
                                          int64_t world_size);

// Fills the number of updates, and the learning rate at some of them.
void fill_length(const Job& job, const RunLength& length, const Engine& engine, RunPlan& plan);

// Fills what follows from job, sampler and engine: batch, length, schedule, groups, bytes.
void fill_plan(const Job& job, const Sampler& sampler, const RunLength& length, const Engine& engine,
               const World& world, RunPlan& plan);

}  // namespace gradstep
