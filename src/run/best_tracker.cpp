// no torch
// Which values an evaluation has follows from the task.
#include "run/best_tracker.h"

#include <cmath>

#include "base/nearest.h"
#include "gradstep/base/error.h"
#include "report/averaged.h"

namespace gradstep {
namespace {

bool has_finite_loss(const EvalRow& row, const std::string& metric) {
  return std::isfinite(is_of_averages(metric) ? row.ema_val_loss.value_or(NAN) : row.val_loss);
}

std::vector<BestMetric> choices(const Task& task, bool has_ema) {
  std::vector<BestMetric> all;
  for (const Metric& metric : task.metrics) {
    if (metric.direction != Direction::kNone && metric.table_of.empty())
      all.push_back({"val_" + metric.name, metric.direction == Direction::kHigher});
  }
  all.push_back({"val_loss", false});
  const size_t num_plain = all.size();
  for (size_t i = 0; has_ema && i < num_plain; ++i)
    all.push_back({kAveragedPrefix + all[i].name, all[i].higher_is_better});
  return all;
}

}  // namespace

BestMetric find_best_metric(const std::string& asked, const Task& task, bool has_ema) {
  const std::vector<BestMetric> known = choices(task, has_ema);
  if (asked == "auto") return known.front();
  std::vector<std::string> names;
  for (const BestMetric& each : known) {
    if (each.name == asked) return each;
    names.push_back(each.name);
  }
  check_averages(asked, has_ema);
  throw ConfigError("`best_metric` " + asked + ": this task has no metric of that name" +
                    known_names(asked, names));
}

void check_averages(const std::string& asked, bool has_ema) {
  if (!has_ema && is_of_averages(asked))
    throw ConfigError("`best_metric` " + asked + " needs averages; give `ema` such as 0.999");
}

// The metric, negated if lower is better; NaN if the row lacks it.
double BestTracker::merit(const EvalRow& row) const {
  const double value = row.value(metric_.name).value_or(NAN);
  return metric_.higher_is_better ? value : -value;
}

bool BestTracker::is_better(const EvalRow& row) const {
  const double value = merit(row);
  if (!has_finite_loss(row, metric_.name) || !std::isfinite(value)) return false;
  // A best evaluation that lacks the metric, from before this metric was chosen, is replaced.
  return !best_ || !(merit(*best_) >= value);
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
