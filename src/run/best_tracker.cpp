// no torch
// Accuracies rise, losses fall.
#include "run/best_tracker.h"

#include <cmath>

namespace gradstep {
namespace {

// The metric as a number of which more is better; NaN where the row lacks it.
double merit(const EvalRow& row, const std::string& metric) {
  if (metric == "val_loss") return -row.val_loss;
  if (metric == "ema_val_loss") return -row.ema_val_loss.value_or(NAN);
  if (metric == "ema_val_acc") return row.ema_val_acc.value_or(NAN);
  return row.val_acc;
}

bool has_finite_loss(const EvalRow& row, const std::string& metric) {
  return std::isfinite(metric.starts_with("ema_") ? row.ema_val_loss.value_or(NAN) : row.val_loss);
}

}  // namespace

bool BestTracker::is_better(const EvalRow& row) const {
  const double value = merit(row, metric_);
  if (!has_finite_loss(row, metric_) || !std::isfinite(value)) return false;
  // A best one that lacks the metric, from before it was asked for, gives way.
  return !best_ || !(merit(*best_, metric_) >= value);
}

void BestTracker::offer(EvalRow& row) {
  row.best = is_better(row);
  evals_without_best_ = row.best ? 0 : evals_without_best_ + 1;
  if (row.best) best_ = row;
  last_ = row;
}

void BestTracker::restore(std::optional<EvalRow> last, std::optional<EvalRow> best,
                          int64_t evals_without_best) {
  last_ = std::move(last);
  best_ = std::move(best);
  evals_without_best_ = evals_without_best;
}

}  // namespace gradstep
