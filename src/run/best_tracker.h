// BestTracker: which evaluation is the best so far, and how long ago that was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gradstep/model/task.h"
#include "gradstep/report/sinks.h"

namespace gradstep {

// A value of the rows, and which way it gets better.
struct BestMetric {
  std::string name = "val_loss";  // as EvalRow::value takes it
  bool higher_is_better = false;
};

// What `asked` names among the values that evaluations of this task give: "auto" is the first metric with a
// direction, or the loss. Throws ConfigError listing the names for any other, and for a value of the moving
// average if there is no average.
[[nodiscard]] BestMetric find_best_metric(const std::string& asked, const Task& task, bool has_ema);

// The last of these alone, which needs no task.
void check_averages(const std::string& asked, bool has_ema);

class BestTracker {
 public:
  // patience: evaluations without a better one after which to stop, 0: never.
  BestTracker(BestMetric metric, int64_t patience) : metric_(std::move(metric)), patience_(patience) {}

  [[nodiscard]] const BestMetric& metric() const { return metric_; }

  // Sets row.best, and remembers the row. One whose loss is not finite is never the best.
  void offer(EvalRow& row);
  [[nodiscard]] bool out_of_patience() const { return patience_ > 0 && evals_without_best_ >= patience_; }

  [[nodiscard]] const std::optional<EvalRow>& last() const { return last_; }
  [[nodiscard]] const std::optional<EvalRow>& best() const { return best_; }
  [[nodiscard]] int64_t evals_without_best() const { return evals_without_best_; }
  // The files of the best evaluation were lost, or those of the evaluation at `update`.
  void forget() { best_.reset(); }
  void forget(int64_t update) {
    if (best_ && best_->update == update) forget();
  }
  void restore(std::optional<EvalRow> last, std::optional<EvalRow> best, int64_t evals_without_best);

 private:
  [[nodiscard]] bool is_better(const EvalRow& row) const;

  [[nodiscard]] double merit(const EvalRow& row) const;

  BestMetric metric_;
  int64_t patience_;
  std::optional<EvalRow> last_;
  std::optional<EvalRow> best_;
  int64_t evals_without_best_ = 0;
};

}  // namespace gradstep
