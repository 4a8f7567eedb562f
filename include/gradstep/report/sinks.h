// Sinks: where the rows of a run go. Console, metrics.jsonl, TensorBoard, or one of your own.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gradstep/report/rows.h"

namespace gradstep {

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
  /// What the user should know about the reports since the last call, one line each; cheap when there is
  /// nothing.
  [[nodiscard]] virtual std::vector<std::string> take_warnings() { return {}; }
};

struct BestEffortOptions {
  /// Rows that wait at most. Windows beyond are dropped, other rows beyond twice as many.
  size_t max_rows = 4096;
  double batch_seconds = 0.2;  ///< that windows may wait for more
  double close_seconds = 3;    ///< that the end of a run waits at most for the rows that are left
};

class BestEffortSink;

/// Hands each row to each of its sinks, in order.
class SinkList final : public Sink {
 public:
  SinkList();
  ~SinkList() override;
  /// A sink that the run needs: what it throws ends the run.
  void add(std::unique_ptr<Sink> sink);
  /// A sink that can never hurt the run. It gets its rows on a thread of its own, through a bounded queue,
  /// and nothing waits for it but close(). If it throws, it gets no more rows; if it is too slow, rows are
  /// dropped; take_warnings() tells of both, under `name`. It may outlive the list if a call never returns,
  /// so it must own what it uses.
  void add_best_effort(const std::string& name, std::unique_ptr<Sink> sink, BestEffortOptions options = {});
  /// Waits for the best-effort sinks, close_seconds at most. They get no more rows. The destructor does it
  /// too, but take_warnings() tells what was lost only afterwards.
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

struct ConsoleOptions {
  int64_t log_interval = 20;  // windows; 0: no window lines
  int64_t total_updates = 0;  // for the bar and the time left
  bool is_terminal = false;   // draw the bar, anew at most ten times a second
  bool quiet = false;         // only the last line
  int width = 80;             // columns of the terminal
};

class ConsoleSink final : public Sink {
 public:
  // `out` stays the caller's. Unlike other sinks it never throws: once `out` takes no more (a closed pipe, a
  // full disk), it goes silent, so that a run does not end with its terminal. Destroying it erases the bar.
  ConsoleSink(std::FILE* out, ConsoleOptions options);
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

class JsonlSink final : public Sink {
 public:
  // Appends to `path`, whole lines only. Window rows that follow each other fast are held back for a second
  // at most while further rows come; evaluations, events and the end are written at once, with all rows
  // before them. end() adds {"event":"end", ...}. A write that fails throws std::system_error with the path
  // and leaves whole lines behind.
  explicit JsonlSink(const std::string& path);
  ~JsonlSink() override;
  void window(const WindowRow& row) override;
  void eval(const EvalRow& row) override;
  void event(const EventRow& row) override;
  void end(const RunEnd& row) override;
  void flush() override;
  // The position is the size of the file in bytes, under the file's name. Rewinding cuts what lies behind;
  // without a position of this file it is moved aside, to <name>-1.jsonl or so. Throws CheckpointError for a
  // position that is no number.
  void note_position(std::map<std::string, std::string>& positions) override;
  [[nodiscard]] std::string rewind(const std::map<std::string, std::string>& positions,
                                   Events events) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes event files. Steps are updates:
///
/// - `train/loss`, `train/lr`, `train/grad_norm`, `perf/samples_per_s` for each update; `train/loss_scale`
///   unless it is 1. A skipped window makes no update and adds no point.
/// - `val/loss`, `val/<metric>` for each evaluation, `val_ema/...` for the averaged weights.
/// - `settings` and `plan` as texts.
///
/// Each start writes a new file into the same folder and tells TensorBoard to drop later points, so that a
/// run that was killed and resumed, or went back, shows each update once. Give it to
/// SinkList::add_best_effort, so that a disk that hangs does not hold up the run.
class TensorBoardSink final : public Sink {
 public:
  /// The folder is created with the first row, inside the run's folder as a rule. All calls throw
  /// std::system_error with the path if it cannot be written.
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
