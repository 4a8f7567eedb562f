// RecordingSink: keeps the rows of a run for the test to look at.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "gradstep/report/sinks.h"

namespace gradstep::testing {

class RecordingSink final : public Sink {
 public:
  void begin(const RunStart& start) override { starts.push_back(start); }
  void window(const WindowRow& row) override {
    windows.push_back(row);
    if (on_window) on_window(row);
  }
  void eval(const EvalRow& row) override {
    evals.push_back(row);
    if (on_eval) on_eval(row);
  }
  void event(const EventRow& row) override { events.push_back(row); }
  void end(const RunEnd& row) override {
    ends.push_back(row);
    if (on_end) on_end(row);
  }
  void flush() override { ++num_flushes; }

  std::vector<RunStart> starts;
  std::vector<WindowRow> windows;
  std::vector<EvalRow> evals;
  std::vector<EventRow> events;
  std::vector<RunEnd> ends;
  int num_flushes = 0;
  // Called in the midst of the run, for a test that wants to interfere.
  std::function<void(const WindowRow&)> on_window;
  std::function<void(const EvalRow&)> on_eval;
  std::function<void(const RunEnd&)> on_end;
};

}  // namespace gradstep::testing
