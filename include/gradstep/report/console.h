// ConsoleSink: the lines and the progress bar that a person watches on stdout.
#pragma once

#include <cstdio>
#include <memory>

#include "gradstep/report/sink.h"

namespace gradstep {

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

}  // namespace gradstep
