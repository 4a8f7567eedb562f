// no torch
// Best-effort sinks: whatever one does, calls return at once, nothing is thrown, and the end comes soon.
#include "report/best_effort.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <limits>
#include <stdexcept>
#include <thread>

#include "gradstep/base/error.h"
#include "report/event_text.h"

namespace gradstep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Clock = std::chrono::steady_clock;

// What a test sees of a sink that lives on a thread of its own. The sink shares it, as it may outlive the
// test's body.
struct Log {
  void add(const std::string& call) {
    const std::lock_guard lock(mutex);
    calls.push_back(call);
  }
  [[nodiscard]] std::vector<std::string> all() {
    const std::lock_guard lock(mutex);
    return calls;
  }
  std::mutex mutex;
  std::vector<std::string> calls;
  std::promise<void> gate;  // of a sink that hangs
  std::shared_future<void> opened = gate.get_future().share();
  std::promise<void> gone;  // the sink was destroyed
};

// Notes calls. `on_window` and `on_destruction` may throw, sleep or hang.
struct Behaviour {
  std::function<void(Log&)> on_window = [](Log&) {};
  std::function<void(Log&)> on_destruction = [](Log&) {};
};

class LoggingSink final : public Sink {
 public:
  LoggingSink(std::shared_ptr<Log> log, Behaviour behaviour)
      : log_(std::move(log)), behaviour_(std::move(behaviour)) {}
  ~LoggingSink() override {
    behaviour_.on_destruction(*log_);
    log_->gone.set_value();
  }
  void begin(const RunStart& start) override { log_->add("begin " + std::to_string(start.first_update)); }
  void window(const WindowRow& row) override {
    behaviour_.on_window(*log_);
    log_->add("window " + std::to_string(row.step.window));
  }
  void eval(const EvalRow& row) override { log_->add("eval " + std::to_string(row.update)); }
  void event(const EventRow& row) override { log_->add(event_line(row.event)); }
  void end(const RunEnd& row) override { log_->add("end " + std::to_string(row.update)); }
  void flush() override { ++num_flushes; }

  std::atomic<int> num_flushes{0};

 private:
  std::shared_ptr<Log> log_;
  Behaviour behaviour_;
};

void hang(Log& log) { log.opened.wait(); }

class BestEffortTest : public ::testing::Test {
 protected:
  BestEffortSink sink(Behaviour behaviour, BestEffortOptions options = {.close_seconds = 60}) {
    return {"toy", std::make_unique<LoggingSink>(log_, std::move(behaviour)), options};
  }
  static void window(Sink& sink, int64_t number) {
    WindowRow row;
    row.step.window = number;
    sink.window(row);
  }
  // Every kind of row; the seconds that it took.
  static double whole_run(Sink& sink, int64_t num_windows) {
    const Clock::time_point start = Clock::now();
    sink.begin({.first_update = 0});
    for (int64_t i = 1; i <= num_windows; ++i) window(sink, i);
    std::map<std::string, std::string> positions;
    sink.note_position(positions);
    EXPECT_THAT(positions, IsEmpty());
    sink.event({.event = Warning{"x"}});
    sink.eval({.update = num_windows});
    EXPECT_EQ(sink.rewind({}, Sink::Events::kKeep), "");
    sink.end({.update = num_windows});
    sink.flush();
    return seconds_since(start);
  }
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  // A hung thread must be gone before the test ends, lest it looks at what is no more.
  void release() {
    log_->gate.set_value();
    log_->gone.get_future().wait();
  }

  std::shared_ptr<Log> log_ = std::make_shared<Log>();
};

TEST_F(BestEffortTest, RowsArriveInTheirOrderBeforeTheEnd) {
  BestEffortSink sink = this->sink({});
  whole_run(sink, 3);
  sink.close();
  EXPECT_THAT(log_->all(),
              ElementsAre("begin 0", "window 1", "window 2", "window 3", "warning: x", "eval 3", "end 3"));
  EXPECT_THAT(sink.take_warnings(), IsEmpty());
  window(sink, 4);  // of no use any more, and no harm
  sink.close();
  EXPECT_THAT(log_->all(), SizeIs(7));
}

TEST_F(BestEffortTest, WindowsArriveWithoutAnEnd) {
  BestEffortSink sink = this->sink({}, {.batch_seconds = 0.01, .close_seconds = 60});
  window(sink, 1);
  const Clock::time_point start = Clock::now();
  while (log_->all().empty() && seconds_since(start) < 60) std::this_thread::yield();
  EXPECT_THAT(log_->all(), ElementsAre("window 1"));
}

// A batch that would wait for an hour; an evaluation brings all before it along.
TEST_F(BestEffortTest, RareRowsDoNotWait) {
  BestEffortSink sink = this->sink({}, {.batch_seconds = 3600, .close_seconds = 60});
  window(sink, 1);
  sink.eval({.update = 1});
  const Clock::time_point start = Clock::now();
  while (log_->all().size() < 2 && seconds_since(start) < 60) std::this_thread::yield();
  EXPECT_THAT(log_->all(), ElementsAre("window 1", "eval 1"));
}

TEST_F(BestEffortTest, OneThatHangsForEverHoldsNothingUp) {
  {
    BestEffortSink sink = this->sink({.on_window = hang}, {.max_rows = 100, .close_seconds = 0.05});
    EXPECT_LT(whole_run(sink, 10'000), 5);
    const Clock::time_point start = Clock::now();
    sink.close();
    EXPECT_LT(seconds_since(start), 5);
    EXPECT_THAT(sink.take_warnings(),
                ElementsAre("toy: is too slow: rows are dropped",
                            "toy: did not finish in time: its last rows are missing",
                            AllOf(HasSubstr("toy: lost "), HasSubstr(" rows, as it was too slow"))));
  }
  release();  // the thread still has all that it needs
  EXPECT_EQ(log_->all().at(0), "begin 0");
}

TEST_F(BestEffortTest, OneThatHangsWhenItGoesHoldsNothingUp) {
  {
    BestEffortSink sink = this->sink({.on_destruction = hang}, {.close_seconds = 0.05});
    whole_run(sink, 1);
  }
  release();
  EXPECT_THAT(log_->all(), SizeIs(5));
}

TEST_F(BestEffortTest, OneThatThrowsGetsNoMoreRowsAndIsTold) {
  BestEffortSink sink =
      this->sink({.on_window = [](Log&) { throw std::runtime_error("cannot write x: disk full"); }});
  whole_run(sink, 10);
  log_->gone.get_future().wait();  // at once, not at the end
  EXPECT_LT(whole_run(sink, 10'000), 5);
  sink.close();
  EXPECT_THAT(log_->all(), ElementsAre("begin 0"));
  EXPECT_THAT(sink.take_warnings(),
              ElementsAre("toy: cannot write x: disk full; the run goes on without it"));
  EXPECT_THAT(sink.take_warnings(), IsEmpty());  // told once
}

TEST_F(BestEffortTest, OneThatThrowsWhateverIsTold) {
  BestEffortSink sink = this->sink({.on_window = [](Log&) { throw 7; }});
  whole_run(sink, 1);
  sink.close();
  EXPECT_THAT(sink.take_warnings(), ElementsAre(HasSubstr("unknown reason")));
}

// Windows go first: the rows behind them say where the run stands.
TEST_F(BestEffortTest, OneThatIsSlowLosesWindowsOnly) {
  BestEffortSink sink =
      this->sink({.on_window = hang}, {.max_rows = 10, .batch_seconds = 0, .close_seconds = 60});
  EXPECT_LT(whole_run(sink, 1000), 5);
  EXPECT_THAT(sink.take_warnings(), ElementsAre("toy: is too slow: rows are dropped"));
  log_->gate.set_value();
  sink.close();
  const std::vector<std::string> calls = log_->all();
  EXPECT_LE(calls.size(), 25U);  // a queue, a batch under way, and the rows that are no windows
  EXPECT_THAT(std::vector(calls.end() - 3, calls.end()), ElementsAre("warning: x", "eval 1000", "end 1000"));
  EXPECT_THAT(sink.take_warnings(), ElementsAre(HasSubstr("toy: lost 9")));
}

TEST_F(BestEffortTest, TheQueueIsBoundedForOtherRowsToo) {
  BestEffortSink sink = this->sink({.on_window = hang}, {.max_rows = 10, .close_seconds = 60});
  window(sink, 1);
  for (int i = 0; i < 1000; ++i) sink.eval({.update = i});
  log_->gate.set_value();
  sink.close();
  EXPECT_LE(log_->all().size(), 60U);
}

TEST_F(BestEffortTest, WhatIsSlowButInTimeArrives) {
  BestEffortSink sink =
      this->sink({.on_window = [](Log&) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }});
  whole_run(sink, 50);
  sink.close();
  EXPECT_THAT(log_->all(), SizeIs(54));
  EXPECT_THAT(sink.take_warnings(), IsEmpty());
}

// One line, without the backtrace of LibTorch's errors.
TEST(BestEffortSink, AnErrorOfSeveralLinesIsOneWarningLine) {
  const auto log = std::make_shared<Log>();
  BestEffortSink sink(
      "s",
      std::make_unique<LoggingSink>(
          log, Behaviour{.on_window = [](Log&) { throw std::runtime_error("first\nsecond"); }}),
      {});
  sink.window({});
  sink.close();
  EXPECT_THAT(sink.take_warnings(), ElementsAre(HasSubstr("s: first second; the run goes on")));
}

TEST_F(BestEffortTest, ToWaitForEverIsToWait) {
  constexpr double kForEver = std::numeric_limits<double>::infinity();
  BestEffortSink sink =
      this->sink({.on_window = [](Log&) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }},
                 {.batch_seconds = kForEver, .close_seconds = kForEver});
  whole_run(sink, 2);
  sink.close();
  EXPECT_THAT(log_->all(), SizeIs(6));
  EXPECT_THAT(sink.take_warnings(), IsEmpty());
}

TEST(BestEffortSink, TimesThatAreNoneAreRefused) {
  for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN()}) {
    for (const BestEffortOptions& options :
         {BestEffortOptions{.batch_seconds = bad}, BestEffortOptions{.close_seconds = bad}}) {
      SinkList sinks;
      auto sink = std::make_unique<LoggingSink>(std::make_shared<Log>(), Behaviour());
      EXPECT_THROW(sinks.add_best_effort("toy", std::move(sink), options), ConfigError);
    }
  }
}

}  // namespace
}  // namespace gradstep
