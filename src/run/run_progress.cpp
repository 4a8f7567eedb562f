// Gathers and restores; decides nothing.
#include "run/run_progress.h"

#include <torch/torch.h>
#include <torch/version.h>

#include <algorithm>
#include <functional>

#include "gradstep/base/version.h"
#include "run/fit_position.h"

namespace gradstep {
namespace {

constexpr size_t kScaleHistory = 64;

// In the order of the task; checkpoints keep them by name.
void sort_metrics(const Task& task, std::vector<MetricValue>& metrics) {
  const auto place = [&](const MetricValue& value) {
    return std::ranges::find(task.metrics, value.name, &Metric::name) - task.metrics.begin();
  };
  std::ranges::stable_sort(metrics, std::less<>(), place);
}

std::optional<EvalRow> in_order(const Task& task, std::optional<EvalRow> row) {
  if (!row) return row;
  sort_metrics(task, row->metrics);
  sort_metrics(task, row->ema_metrics);
  return row;
}

// An interval that is another one now begins anew.
void restore_timer(DueTimer& timer, bool same_interval, double done, const Elapsed& elapsed) {
  if (same_interval) {
    timer.restore(done);
  } else {
    timer.mark_done(elapsed);
  }
}

}  // namespace

void RunProgress::advance(const StepReport& report, const Position& after) {
  next = after;
  samples += report.samples;
  epoch = report.epoch;
  if (!scale_history.empty() && scale_history.back().second == report.loss_scale) return;
  scale_history.emplace_back(report.window, report.loss_scale);
  if (scale_history.size() > kScaleHistory) scale_history.erase(scale_history.begin());
}

Elapsed RunProgress::at(double seconds) const {
  const auto windows_per_epoch = static_cast<double>(setup.sampler.windows_per_epoch());
  return {.updates = setup.engine.counters().updates,
          .epochs = static_cast<double>(next.epoch) + static_cast<double>(next.index) / windows_per_epoch,
          .seconds = seconds};
}

const SteppedOver* RunProgress::stepped_over_at(int64_t window) const {
  for (const SteppedOver& each : stepped_over) {
    if (each.window == window) return &each;
  }
  return nullptr;
}

std::unique_ptr<Loader> RunProgress::make_loader() const {
  return std::make_unique<Loader>(setup.job.data.train, setup.sampler,
                                  LoaderOptions{.num_workers = setup.job.num_workers,
                                                .rank = setup.world.rank(),
                                                .world_size = setup.world.size(),
                                                .seed = setup.job.engine.seed},
                                  next);
}

TrainState RunProgress::state(double seconds) const {
  TrainState now = capture_engine(setup.engine);
  now.next = next;
  now.samples = samples;
  now.seconds = seconds;
  now.evals_due = evals.done();
  now.saves_due = saves.done();
  now.stepped_over = stepped_over;
  now.num_rollbacks = num_rollbacks;
  now.scale_history = scale_history;
  now.last_eval = best.last();
  now.best_eval = best.best();
  now.evals_without_best = best.evals_without_best();
  now.settings = setup.setting_texts();
  now.asked_micro_batch = setup.job.engine.micro_batch;
  now.eval_interval = setup.job.eval.interval;
  now.save_interval = setup.job.save.interval;
  now.best_metric = setup.best_metric.name;
  now.info = setup.model_info();
  now.world_size = setup.world.size();
  now.global_batch = setup.sampler.global_batch();
  now.total_updates = setup.length.total_updates;
  now.planned_updates = setup.planned_updates;
  now.eval_fingerprint = setup.eval_fingerprint;
  now.dataset_fingerprint = setup.dataset_fingerprint;
  now.report_positions = report_positions;
  now.version = version();
  now.git_commit = git_commit();
  now.torch_version = TORCH_VERSION;
  return now;
}

BlackBox RunProgress::black_box(const Window& window, const StepReport& step) const {
  BlackBox box = make_black_box(setup.engine, window, step, setup.world.rank());
  box.scale_history = scale_history;
  box.info = setup.model_info();
  box.settings = setup.setting_texts();
  box.dataset_fingerprint = setup.dataset_fingerprint;
  return box;
}

void RunProgress::take_over(const std::string& where, const TrainState& state, int64_t micro_batch) {
  TrainState fitted = state;  // shares the tensors
  fitted.engine.micro_batch = micro_batch;
  restore_engine(where, fitted, setup.engine, /*other_moments=*/setup.job.accept_drift);
  next = fit_position(state, setup.sampler);
  samples = state.samples;
  epoch = next.index > 0 || next.epoch == 0 ? next.epoch : next.epoch - 1;
  stepped_over = state.stepped_over;
  num_rollbacks = state.num_rollbacks;
  scale_history = state.scale_history;
  report_positions = state.report_positions;
  // A best evaluation by another metric, or on other samples, says nothing about this one.
  if (setup.best_metric.name == state.best_metric &&
      (state.eval_fingerprint.empty() || state.eval_fingerprint == setup.eval_fingerprint))
    best.restore(in_order(setup.job.task, state.last_eval), in_order(setup.job.task, state.best_eval),
                 state.evals_without_best);
  else
    best.restore(in_order(setup.job.task, state.last_eval), std::nullopt, 0);
  const Elapsed elapsed = at(state.seconds);
  restore_timer(evals, setup.job.eval.interval == state.eval_interval, state.evals_due, elapsed);
  restore_timer(saves, setup.job.save.interval == state.save_interval, state.saves_due, elapsed);
}

}  // namespace gradstep
