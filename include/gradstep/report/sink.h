// Sink: where the rows of a run go. The interface behind which console and metrics.jsonl stand.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradstep/base/exit_code.h"
#include "gradstep/base/step_report.h"
#include "gradstep/report/events.h"
#include "gradstep/report/plan.h"

namespace gradstep {

// One window: what the engine did, and what it cost.
struct WindowRow {
  StepReport step{};
  int64_t window_of_epoch = 0;  // from 1
  int64_t samples = 0;          // cumulative, over all ranks
  // This window's samples over all ranks / wall time since the last row, less evaluation and saving.
  double samples_per_s = 0;
  double time_data = 0;  // seconds waited for the loader
  double time_step = 0;  // seconds in Engine::step
  int64_t memory = 0;    // bytes the process holds (resident set), on an accelerator too
};

/// A metric of an evaluation.
struct MetricValue {
  std::string name;  ///< "acc"
  double value = 0;
  bool operator==(const MetricValue&) const = default;
};

/// One evaluation.
struct EvalRow {
  int64_t update = 0;
  int64_t epoch = 0;  ///< of the last window consumed, from 0
  double val_loss = 0;
  std::vector<MetricValue> metrics{};  ///< in the order of the task
  int64_t samples = 0;
  double time_eval = 0;  ///< seconds
  bool best = false;     ///< better than all before it
  /// Of the moving average of the parameters, if there is one.
  std::optional<double> ema_val_loss{};
  std::vector<MetricValue> ema_metrics{};
  bool operator==(const EvalRow&) const = default;

  /// Every value with the name that rows and --best-metric use: val_loss, val_<metric>, ema_val_loss,
  /// ema_val_<metric>.
  [[nodiscard]] std::vector<MetricValue> named_values() const;
  /// One of them; nothing if there is none of that name.
  [[nodiscard]] std::optional<double> value(const std::string& name) const;
  /// Sets one of them, the reverse of named_values(). False: no such name.
  bool set_value(const std::string& name, double number);
};

/// What a run is, before its first row.
struct RunStart {
  std::vector<std::pair<std::string, std::string>> settings{};  ///< key and value, as in config.toml
  RunPlan plan{};
  int64_t world_size = 1;
  std::string resumed_from{};  ///< path of the checkpoint; empty: a new run
  int64_t first_update = 0;    ///< updates applied before this start
};

/// Why a run ended.
enum class EndReason {
  kDone,       ///< all updates are made
  kEarlyStop,  ///< evaluations did not get better any more
  kStopped,    ///< by RunEnd::stopped_by
  kStopAfter,  ///< the updates of this start are made
  kMaxTime,    ///< the time of this start is over
};

// How a run ended.
struct RunEnd {
  int64_t update = 0;
  int64_t total_updates = 0;
  int64_t samples = 0;
  int64_t skipped_total = 0;
  double seconds = 0;  // of training, evaluation included
  EndReason reason = EndReason::kDone;
  ExitCode stopped_by = ExitCode::kOk;  // the signal's, with kStopped
  std::optional<EvalRow> last_eval{};
  std::optional<EvalRow> best_eval{};
  std::string best_metric{};  // by which the best is the best: "val_acc"
  std::string model_path{};   // empty: none written
  bool can_go_on = false;     // from a checkpoint, by --resume auto
};

// Calls come from one thread, in the order of the run. A sink that cannot write throws std::system_error.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Comes once a start, before everything else.
  virtual void begin(const RunStart& /*start*/) {}
  virtual void window(const WindowRow& row) = 0;
  virtual void eval(const EvalRow& row) = 0;
  virtual void event(const EventRow& row) = 0;
  virtual void end(const RunEnd& row) = 0;
  // Makes what was written so far visible to readers of the file.
  virtual void flush() {}
  // For a checkpoint: writes what is held back, and adds where the report stands, under its name.
  virtual void note_position(std::map<std::string, std::string>& /*positions*/) {}
  // Goes back to where it stood: rows of windows and evaluations since are dropped, and will come again. In
  // the midst of a run, events stay. Returns what is lost of what was reported before, in one line; empty:
  // nothing.
  enum class Events { kDrop, kKeep };
  [[nodiscard]] virtual std::string rewind(const std::map<std::string, std::string>& /*positions*/,
                                           Events /*events*/) {
    return {};
  }
};

// Hands each row to each of its sinks, in order. Empty: reports go nowhere.
class SinkList final : public Sink {
 public:
  void add(std::unique_ptr<Sink> sink) { sinks_.push_back(std::move(sink)); }
  void begin(const RunStart& start) override;
  void window(const WindowRow& row) override;
  void eval(const EvalRow& row) override;
  void event(const EventRow& row) override;
  void end(const RunEnd& row) override;
  void flush() override;
  void note_position(std::map<std::string, std::string>& positions) override;
  [[nodiscard]] std::string rewind(const std::map<std::string, std::string>& positions,
                                   Events events) override;

 private:
  std::vector<std::unique_ptr<Sink>> sinks_;
};

}  // namespace gradstep
