// no torch
// SinkList: every row reaches every sink, in order, and the end of a run reaches them all even when one
// fails.
#include "gradstep/report/sink.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace gradstep {
namespace {

// Notes its name and the call; throws where it is told to.
class NotingSink final : public Sink {
 public:
  NotingSink(std::string name, std::vector<std::string>& calls, bool fails = false)
      : name_(std::move(name)), calls_(calls), fails_(fails) {}
  void window(const WindowRow& row) override { note("window " + std::to_string(row.step.window)); }
  void eval(const EvalRow& row) override { note("eval " + std::to_string(row.update)); }
  void event(const EventRow& row) override { note("event " + row.name); }
  void end(const RunEnd& row) override { note("end " + row.reason); }
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
  list.window(row);
  list.eval({.update = 4});
  list.event({.name = "x"});
  list.end({.reason = "done"});
  list.flush();
  EXPECT_EQ(calls, (std::vector<std::string>{"a:window 3", "b:window 3", "a:eval 4", "b:eval 4", "a:event x",
                                             "b:event x", "a:end done", "b:end done", "a:flush", "b:flush"}));
}

TEST(SinkList, TheEndReachesAllAndTheFirstErrorComesOut) {
  std::vector<std::string> calls;
  SinkList list;
  list.add(std::make_unique<NotingSink>("a", calls, true));
  list.add(std::make_unique<NotingSink>("b", calls, true));
  list.add(std::make_unique<NotingSink>("c", calls));
  try {
    list.end({.reason = "done"});
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "a failed");
  }
  EXPECT_EQ(calls, (std::vector<std::string>{"a:end done", "b:end done", "c:end done"}));
}

TEST(SinkList, EmptyIsNoReportAtAll) {
  SinkList list;
  list.window({});
  list.end({});
  list.flush();
}

}  // namespace
}  // namespace gradstep
