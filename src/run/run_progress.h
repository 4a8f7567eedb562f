// RunProgress: what changes while a run goes on, besides the engine. The two together make a TrainState.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/data/loader.h"
#include "incident/black_box.h"
#include "run/best_tracker.h"
#include "run/planner.h"
#include "run/run_setup.h"

namespace gradstep {

struct RunProgress {
  // The setup must outlive it.
  explicit RunProgress(RunSetup& of)
      : setup(of),
        best(of.best_metric, of.job.eval.early_stop_patience),
        evals(of.job.eval.interval),
        saves(of.job.save.interval) {}

  // A window was consumed and `after` is the one to come.
  void advance(const StepReport& report, const Position& after);
  [[nodiscard]] Elapsed at(double seconds) const;
  // The window with this number (from 1), if a rollback came back to before it; else null.
  [[nodiscard]] const SteppedOver* stepped_over_at(int64_t window) const;
  // Windows from `next` on.
  [[nodiscard]] std::unique_ptr<Loader> make_loader() const;

  // What replay needs of the window just taken.
  [[nodiscard]] BlackBox black_box(const Window& window, const StepReport& step) const;
  // Tensors are the live ones. seconds: of training so far.
  [[nodiscard]] TrainState state(double seconds) const;
  // Brings engine and progress to where the state was; where: begins messages. Throws CheckpointError where a
  // tensor does not fit; nothing has changed then. The engine goes on with `micro_batch`.
  void take_over(const std::string& where, const TrainState& state, int64_t micro_batch);

  RunSetup& setup;
  BestTracker best;
  DueTimer evals;
  DueTimer saves;
  Position next{};      // of the window to come
  int64_t samples = 0;  // consumed, over all ranks
  int64_t epoch = 0;    // of the last window
  std::vector<SteppedOver> stepped_over{};
  int64_t num_rollbacks = 0;
  std::vector<std::pair<int64_t, double>> scale_history{};  // (window, scale from there on)
  std::map<std::string, std::string> report_positions{};
};

}  // namespace gradstep
