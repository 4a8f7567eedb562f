// no torch
// SinkList: every row reaches every sink, in order, and the end of a run reaches them all even when one
// fails.
#include "gradstep/report/sink.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "report/event_text.h"

namespace gradstep {
namespace {

// Notes its name and the call; throws where it is told to.
class NotingSink final : public Sink {
 public:
  NotingSink(std::string name, std::vector<std::string>& calls, bool fails = false)
      : name_(std::move(name)), calls_(calls), fails_(fails) {}
  void begin(const RunStart& start) override { note("begin " + std::to_string(start.first_update)); }
  void window(const WindowRow& row) override { note("window " + std::to_string(row.step.window)); }
  void eval(const EvalRow& row) override { note("eval " + std::to_string(row.update)); }
  void event(const EventRow& row) override { note("event " + event_line(row.event)); }
  void end(const RunEnd& row) override { note("end " + std::to_string(row.update)); }
  void flush() override { note("flush"); }

 private:
  void note(const std::string& call) {
    calls_.push_back(name_ + ":" + call);
    if (fails_) throw std::runtime_error(name_ + " failed");
  }

  std::string name_;
  std::vector<std::string>& calls_;
  bool fails_;
};

TEST(SinkList, HandsEachRowToEachSinkInOrder) {
  std::vector<std::string> calls;
  SinkList list;
  list.add(std::make_unique<NotingSink>("a", calls));
  list.add(std::make_unique<NotingSink>("b", calls));
  WindowRow row;
  row.step.window = 3;
  list.begin({.first_update = 2});
  list.window(row);
  list.eval({.update = 4});
  list.event({.event = Warning{"x"}});
  list.end({.update = 5});
  list.flush();
  EXPECT_EQ(calls, (std::vector<std::string>{"a:begin 2", "b:begin 2", "a:window 3", "b:window 3", "a:eval 4",
                                             "b:eval 4", "a:event warning: x", "b:event warning: x",
                                             "a:end 5", "b:end 5", "a:flush", "b:flush"}));
}

TEST(SinkList, TheEndReachesAllAndTheFirstErrorComesOut) {
  std::vector<std::string> calls;
  SinkList list;
  list.add(std::make_unique<NotingSink>("a", calls, true));
  list.add(std::make_unique<NotingSink>("b", calls, true));
  list.add(std::make_unique<NotingSink>("c", calls));
  try {
    list.end({.update = 5});
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "a failed");
  }
  EXPECT_EQ(calls, (std::vector<std::string>{"a:end 5", "b:end 5", "c:end 5"}));
}

TEST(SinkList, EmptyIsNoReportAtAll) {
  SinkList list;
  list.window({});
  list.end({});
  list.flush();
}

}  // namespace
}  // namespace gradstep
