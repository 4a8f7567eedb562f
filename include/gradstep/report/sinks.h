// Sinks: where the rows of a run go. Console, metrics.jsonl, TensorBoard, or one of your own.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gradstep/report/rows.h"

namespace gradstep {

/// Takes the rows of a run. Derive from it for a report of your own. Calls come from one thread, in the order
/// of the run. A sink that cannot write throws std::system_error.
class Sink {
 public:
  virtual ~Sink() = default;
  /// A run starts. Comes once, before everything else.
  virtual void begin(const RunStart& /*start*/) {}
  /// A window was consumed.
  virtual void window(const WindowRow& row) = 0;
  /// The model was evaluated.
  virtual void eval(const EvalRow& row) = 0;
  /// Something else happened.
  virtual void event(const EventRow& row) = 0;
  /// The run ended without an error. Comes last.
  virtual void end(const RunEnd& row) = 0;
  /// Makes what was written so far visible to those who read the file.
  virtual void flush() {}
  /// A checkpoint is being made: writes what is held back, and adds where the report is now, under a name of
  /// its own.
  virtual void note_position(std::map<std::string, std::string>& /*positions*/) {}
  /// What becomes of the events after the position that rewind() goes back to.
  enum class Events {
    kDrop,  ///< they go too: a run was resumed, and repeats what came after its checkpoint
    kKeep   ///< they stay: the run goes on, and each event is told once
  };
  /// Goes back to where note_position() was called. Rows of windows and evaluations since then are dropped;
  /// they come again. Returns one line that says which earlier rows are missing; empty: none.
  [[nodiscard]] virtual std::string rewind(const std::map<std::string, std::string>& /*positions*/,
                                           Events /*events*/) {
    return {};
  }
  /// What the user should know about the reports since the last call, one line each. Cheap if there is
  /// nothing.
  [[nodiscard]] virtual std::vector<std::string> take_warnings() { return {}; }
};

/// How long the rows of a best-effort sink may wait. Times must not be negative; infinity waits for ever.
struct BestEffortOptions {
  /// Rows that may wait in the queue. If more wait, rows of windows are dropped; if twice as many wait, all
  /// rows are.
  size_t max_rows = 4096;
  double batch_seconds = 0.2;  ///< time that rows of windows may wait for further ones
  double close_seconds = 3;    ///< longest time that the end of a run waits for the rows that are left
};

class BestEffortSink;

/// A sink that hands each row to each of its sinks, in order.
class SinkList final : public Sink {
 public:
  /// An empty list: rows go nowhere.
  SinkList();
  /// Calls close().
  ~SinkList() override;
  /// Adds a sink that the run needs: an exception of it ends the run.
  void add(std::unique_ptr<Sink> sink);
  /// Adds a sink that can never hurt the run. It gets its rows on a thread of its own, through a bounded
  /// queue, and only close() waits for it. If it throws, it gets no more rows; if it is too slow, rows are
  /// dropped. take_warnings() tells of both, under `name`. If one of its calls never returns, it outlives the
  /// list, so it must own what it uses.
  void add_best_effort(const std::string& name, std::unique_ptr<Sink> sink, BestEffortOptions options = {});
  /// Waits for the best-effort sinks, close_seconds at most; they get no more rows. The destructor does it
  /// too, but only after close() can take_warnings() tell what was lost.
  void close();
  void begin(const RunStart& start) override;
  void window(const WindowRow& row) override;
  void eval(const EvalRow& row) override;
  void event(const EventRow& row) override;
  void end(const RunEnd& row) override;
  void flush() override;
  void note_position(std::map<std::string, std::string>& positions) override;
  [[nodiscard]] std::string rewind(const std::map<std::string, std::string>& positions,
                                   Events events) override;
  [[nodiscard]] std::vector<std::string> take_warnings() override;

 private:
  std::vector<std::unique_ptr<Sink>> sinks_;  // all of them, in order
  std::vector<BestEffortSink*> best_effort_;  // those among them
};

/// What a ConsoleSink prints.
struct ConsoleOptions {
  int64_t log_interval = 20;  ///< windows from one line to the next; 0: no lines of windows
  int64_t total_updates = 0;  ///< for the bar and the time left
  bool is_terminal = false;   ///< draw a progress bar, at most ten times a second
  bool quiet = false;         ///< only the last line
  int width = 80;             ///< columns of the terminal
  /// How the user goes on with a run that did not finish. The last line says it.
  std::string resume_hint = "start it again to go on";
  /// Applied to each line of an event and to the last line; empty: they stay as they are. The lines name
  /// options by their keys in backticks, such as `lr`; a program can put its own names for them here.
  std::function<std::string(const std::string& line)> reword{};
};

/// Prints the rows as lines for people, and a progress bar on a terminal.
class ConsoleSink final : public Sink {
 public:
  /// Prints to `out`, which stays the caller's. Never throws: once `out` takes no more (a closed pipe, a full
  /// disk), it is silent, so that a run does not end with its terminal.
  ConsoleSink(std::FILE* out, ConsoleOptions options);
  /// Erases the bar.
  ~ConsoleSink() override;
  void window(const WindowRow& row) override;
  void eval(const EvalRow& row) override;
  void event(const EventRow& row) override;
  void end(const RunEnd& row) override;
  void flush() override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes the rows as JSON lines: metrics.jsonl. docs/design.md section 5 lists the keys.
class JsonlSink final : public Sink {
 public:
  /// Appends to the file at `path`, whole lines only. Rows of windows that follow each other fast are held
  /// back for a second at most, while further rows come; evaluations, events and the end are written at once,
  /// with all rows before them. end() adds {"event":"end", ...}. If a write fails, the call throws
  /// std::system_error with the path, and whole lines are left in the file.
  explicit JsonlSink(const std::string& path);
  /// Writes what is held back; an error is lost.
  ~JsonlSink() override;
  void window(const WindowRow& row) override;
  void eval(const EvalRow& row) override;
  void event(const EventRow& row) override;
  void end(const RunEnd& row) override;
  void flush() override;
  /// Notes the size of the file in bytes, under the name of the file. If the file was removed, renamed or
  /// replaced since it was opened, writes its rows anew; take_warnings() says so.
  void note_position(std::map<std::string, std::string>& positions) override;
  [[nodiscard]] std::vector<std::string> take_warnings() override;
  /// Cuts the file back to the noted size. If `positions` does not have this file, moves the file aside, to
  /// "metrics-1.jsonl" or so. Throws CheckpointError for a position that is not a number.
  [[nodiscard]] std::string rewind(const std::map<std::string, std::string>& positions,
                                   Events events) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes event files for TensorBoard. Steps are updates:
///
/// - `train/loss`, `train/lr`, `train/grad_norm`, `perf/samples_per_s` for each update, and
///   `train/loss_scale` under fp16. A skipped window makes no update and adds no point.
/// - `val/loss` and `val/METRIC` for each evaluation, `val_ema/...` for the averaged parameters.
/// - `settings` and `plan` as texts.
///
/// Each start writes a new file into the same folder and tells TensorBoard to drop later points, so that a
/// run that was killed and resumed, or that went back, shows each update once. Give it to
/// SinkList::add_best_effort(), so that a disk that hangs does not hold up the run. PyTorch:
/// torch.utils.tensorboard.SummaryWriter.
class TensorBoardSink final : public Sink {
 public:
  /// Writes into `folder`, mostly the folder "tensorboard" of the run, which the first row creates. All calls
  /// throw std::system_error with the path if it cannot be written, or was removed or cut short by others.
  explicit TensorBoardSink(std::string folder);
  ~TensorBoardSink() override;
  void begin(const RunStart& start) override;
  void window(const WindowRow& row) override;
  void eval(const EvalRow& row) override;
  void event(const EventRow& row) override;
  void end(const RunEnd& row) override;
  void flush() override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradstep
