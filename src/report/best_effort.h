// BestEffortSink: a sink behind a thread and a bounded queue, so that nothing it does can hurt the run.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gradstep/report/sinks.h"

namespace gradstep {

// No call throws what the inner sink throws, and none but close() waits for it. Calls come from one thread.
class BestEffortSink final : public Sink {
 public:
  // `name` begins its warnings. The inner sink is called and destroyed on a thread of its own. Throws
  // ConfigError for times that are negative or no numbers.
  BestEffortSink(std::string name, std::unique_ptr<Sink> inner, BestEffortOptions options);
  // As close().
  ~BestEffortSink() override;
  void begin(const RunStart& start) override;
  void window(const WindowRow& row) override;
  void eval(const EvalRow& row) override;
  void event(const EventRow& row) override;
  void end(const RunEnd& row) override;
  void flush() override;
  // Has no position: the inner sink only writes what it holds back. It learns from begin() and RolledBack
  // where the run goes on.
  void note_position(std::map<std::string, std::string>& positions) override;
  [[nodiscard]] std::vector<std::string> take_warnings() override;

  // Waits for the rows that are left, for close_seconds at most. An inner sink that still hangs then is left
  // to its thread, together with all that the thread uses. Rows after this are ignored.
  void close();

 private:
  struct State;
  class Worker;
  template <class Call>
  void put(bool is_window, bool is_urgent, Call call);

  std::shared_ptr<State> state_;  // shared with the thread, which may outlive this
  std::thread thread_;
};

}  // namespace gradstep
