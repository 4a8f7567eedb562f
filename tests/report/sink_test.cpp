// no torch
// SinkList: every row reaches every sink, in order, and the end of a run reaches them all even when one
// fails.
#include <gtest/gtest.h>

#include <stdexcept>

#include "gradstep/report/sinks.h"
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

// Without reports a run goes on as with them: nothing is asked for that only a sink could give.
TEST(SinkList, EmptyKnowsNoPositionAndLosesNothing) {
  SinkList list;
  list.window({});
  std::map<std::string, std::string> positions{{"metrics.jsonl", "10"}};
  list.note_position(positions);
  EXPECT_EQ(positions, (std::map<std::string, std::string>{{"metrics.jsonl", "10"}}));
  EXPECT_EQ(list.rewind(positions, Sink::Events::kDrop), "");
  EXPECT_TRUE(list.take_warnings().empty());
}

// The same failure ends a run or does not, by how the sink was added.
TEST(SinkList, ARequiredSinkThrowsAndABestEffortSinkWarns) {
  std::vector<std::string> required_calls, best_effort_calls;
  SinkList list;
  list.add_best_effort("extra", std::make_unique<NotingSink>("b", best_effort_calls, true));
  list.add(std::make_unique<NotingSink>("a", required_calls, true));
  EXPECT_THROW(list.eval({.update = 4}), std::runtime_error);
  list.close();
  EXPECT_EQ(required_calls, std::vector<std::string>{"a:eval 4"});
  EXPECT_EQ(best_effort_calls, std::vector<std::string>{"b:eval 4"});
  EXPECT_EQ(list.take_warnings(), std::vector<std::string>{"extra: b failed; the run goes on without it"});
}

TEST(SinkList, BestEffortSinksGetAllRowsBeforeTheListCloses) {
  std::vector<std::string> calls;
  SinkList list;
  list.add_best_effort("extra", std::make_unique<NotingSink>("b", calls));
  list.begin({.first_update = 1});
  list.window({});
  list.end({.update = 5});
  list.close();
  EXPECT_EQ(calls.back(), "b:flush");  // there is one for each batch
  std::erase(calls, "b:flush");
  EXPECT_EQ(calls, (std::vector<std::string>{"b:begin 1", "b:window 0", "b:end 5"}));
}

}  // namespace
}  // namespace gradstep
