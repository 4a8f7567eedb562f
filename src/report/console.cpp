// no torch
// Lines for people, with the progress bar below them. Output that fails (a closed pipe, a full disk) ends,
// not the run.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "gradstep/report/sinks.h"
#include "report/event_text.h"
#include "report/format.h"
#include "report/progress_bar.h"

namespace gradstep {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kRedraw = std::chrono::milliseconds(100);

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

bool is_finished(const RunEnd& row) {
  return row.reason == EndReason::kDone || row.reason == EndReason::kEarlyStop;
}

// " | val_acc 0.8435"; a count such as tokens has no decimals.
std::string metric_text(const std::string& prefix, const MetricValue& metric) {
  const bool is_count = metric.value == std::floor(metric.value) && std::abs(metric.value) > 1e4;
  return " | " + prefix + metric.name + " " + fixed_text(metric.value, is_count ? 0 : 4);
}

std::string end_line(const RunEnd& row, const std::string& hint) {
  std::string text;
  if (is_finished(row)) {
    text = reason_text(row) + ": " + std::to_string(row.update) + " updates, ";
  } else {
    text = "not finished: update " + std::to_string(row.update);
    if (row.total_updates > 0) text += " of " + std::to_string(row.total_updates);
    text += " (" + reason_text(row) + "), ";
  }
  text += std::to_string(row.samples) + " samples in " + seconds_text(row.seconds);
  if (row.skipped_total > 0) text += " | " + std::to_string(row.skipped_total) + " skipped";
  if (row.best_eval && row.last_eval && row.best_eval->update != row.last_eval->update) {
    if (const std::optional<double> best = row.best_eval->value(row.best_metric))
      text += " | best " + fixed_text(*best, 4) + " at update " + std::to_string(row.best_eval->update);
  }
  if (row.last_eval) {
    text += " | val_loss " + fixed_text(row.last_eval->val_loss, 4);
    if (!row.last_eval->metrics.empty()) text += metric_text("val_", row.last_eval->metrics.front());
  }
  if (!row.model_path.empty()) text += " | " + row.model_path;
  if (!is_finished(row) && row.resumable) text += " | " + hint;
  return text;
}

// An empty window has no loss.
std::string loss_text(const StepReport& step) {
  return step.outcome == StepOutcome::kEmpty ? "no loss" : "loss " + fixed_text(step.loss, 4);
}

std::string eval_line(const EvalRow& row) {
  std::string text = "Epoch " + std::to_string(row.epoch + 1) + " | Update " + std::to_string(row.update) +
                     " | val_loss " + fixed_text(row.val_loss, 4);
  for (const MetricValue& metric : row.metrics) text += metric_text("val_", metric);
  if (!row.ema_metrics.empty()) {
    text += metric_text("ema_val_", row.ema_metrics.front());
  } else if (row.ema_val_loss) {
    text += " | ema_val_loss " + fixed_text(*row.ema_val_loss, 4);
  }
  return text + " | " + seconds_text(row.time_eval) + (row.best ? " | best" : "");
}

}  // namespace

class ConsoleSink::Impl {
 public:
  Impl(std::FILE* out, ConsoleOptions options) : out_(out), options_(std::move(options)) {}

  // Runs during an exception too, so that the error line does not follow a bar.
  ~Impl() {
    if (const std::string text = bar_.erase(); !text.empty()) write(text);
  }

  void window(const WindowRow& row) {
    if (options_.quiet) return;
    count(row);
    if (is_due(row)) {
      print(window_line(row));
      samples_ = seconds_ = 0;
      skips_ = 0;
    }
    if (options_.is_terminal) draw(row);
  }

  void eval(const EvalRow& row) {
    if (!options_.quiet) print(eval_line(row));
  }

  void event(const EventRow& row) {
    if (std::holds_alternative<RunFailed>(row.event)) return;  // the program prints its error
    if (!options_.quiet) print(reworded(event_line(row.event)));
  }

  void end(const RunEnd& row) { write(bar_.erase() + reworded(end_line(row, options_.resume_hint)) + "\n"); }

 private:
  [[nodiscard]] std::string reworded(const std::string& line) const {
    return options_.reword ? options_.reword(line) : line;
  }

  void count(const WindowRow& row) {
    samples_ += static_cast<double>(row.step.samples);
    seconds_ += static_cast<double>(row.step.samples) / row.samples_per_s;
    if (row.step.skipped()) ++skips_;
  }

  // Every log_interval windows, and at once if a loss or a gradient stops being finite, so that this does not
  // hide between two lines.
  bool is_due(const WindowRow& row) {
    const bool is_empty = row.step.outcome == StepOutcome::kEmpty;
    const bool is_finite = is_empty || std::isfinite(row.step.loss);
    const bool turned = (was_finite_ && !is_finite) || !row.step.first_non_finite.empty();
    was_finite_ = is_finite;
    if (options_.log_interval == 0) return false;
    return turned || row.step.window % options_.log_interval == 0;
  }

  // Over the windows since the last line; "?" if no time has passed.
  [[nodiscard]] std::string rate_text() const {
    const double rate = samples_ / seconds_;
    return std::isfinite(rate) ? fixed_text(rate, 0) + " samples/s" : "? samples/s";
  }

  [[nodiscard]] std::string window_line(const WindowRow& row) const {
    std::string text = "Epoch " + std::to_string(row.step.epoch + 1) + " | Window " +
                       std::to_string(row.window_of_epoch) + " | " + loss_text(row.step) + " | lr " +
                       scientific_text(row.step.lr) + " | " + rate_text();
    if (skips_ > 0)
      text +=
          " | " + std::to_string(skips_) + " skipped, " + std::to_string(row.step.skipped_total) + " in all";
    if (!row.step.first_non_finite.empty()) text += " | not finite: " + row.step.first_non_finite;
    return text;
  }

  void draw(const WindowRow& row) {
    const Clock::time_point now = Clock::now();
    if (first_update_ < 0) {
      first_update_ = row.step.update;
      first_time_ = now;
    }
    if (now - last_draw_ < kRedraw) return;
    last_draw_ = now;
    Progress progress{.done = row.step.update,
                      .total = options_.total_updates,
                      .seconds_left = seconds_left(row.step.update, now),
                      .note = loss_text(row.step)};
    if (seconds_ > 0) progress.note += " | " + rate_text();
    write(bar_.show(bar_text(progress, options_.width - 1)));  // the last column would wrap
  }

  // From the pace since the first window seen; not a number before a second update.
  [[nodiscard]] double seconds_left(int64_t update, Clock::time_point now) const {
    const auto done = static_cast<double>(update - first_update_);
    const auto left = static_cast<double>(std::max<int64_t>(0, options_.total_updates - update));
    return done > 0 ? seconds_between(first_time_, now) / done * left : std::nan("");
  }

  void print(const std::string& line) { write(bar_.print(line)); }

  void write(const std::string& text) {
    is_open_ =
        is_open_ && std::fwrite(text.data(), 1, text.size(), out_) == text.size() && std::fflush(out_) == 0;
  }

  std::FILE* out_;
  ConsoleOptions options_;
  bool is_open_ = true;
  // Since the last line.
  double samples_ = 0;
  double seconds_ = 0;
  int64_t skips_ = 0;
  bool was_finite_ = true;
  // The bar.
  BarLine bar_;
  int64_t first_update_ = -1;
  Clock::time_point first_time_{};
  Clock::time_point last_draw_{};
};

ConsoleSink::ConsoleSink(std::FILE* out, ConsoleOptions options)
    : impl_(std::make_unique<Impl>(out, std::move(options))) {}
ConsoleSink::~ConsoleSink() = default;
void ConsoleSink::window(const WindowRow& row) { impl_->window(row); }
void ConsoleSink::eval(const EvalRow& row) { impl_->eval(row); }
void ConsoleSink::event(const EventRow& row) { impl_->event(row); }
void ConsoleSink::end(const RunEnd& row) { impl_->end(row); }
void ConsoleSink::flush() {}

}  // namespace gradstep
