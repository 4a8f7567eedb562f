// no torch
// Where a report stands, and going back to it: what a resumed or rolled back run does to metrics.jsonl.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <limits>

#include "gradstep/base/error.h"
#include "gradstep/report/sinks.h"
#include "report/append_file.h"
#include "report/row_json.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Positions = std::map<std::string, std::string>;

class PositionsTest : public ::testing::Test {
 protected:
  // The rows of windows `first` to `last`.
  static std::string lines(int64_t first, int64_t last) {
    std::string text;
    for (int64_t window = first; window <= last; ++window) text += window_row_json(row(window)) + "\n";
    return text;
  }
  static WindowRow row(int64_t window) {
    WindowRow row;
    row.step.window = window;
    return row;
  }
  static void report(JsonlSink& sink, int64_t first, int64_t last) {
    for (int64_t window = first; window <= last; ++window) sink.window(row(window));
  }
  static Positions position_of(JsonlSink& sink) {
    Positions positions;
    sink.note_position(positions);
    return positions;
  }
  [[nodiscard]] std::string text() const { return dir_.read("metrics.jsonl"); }

  ScratchDir dir_;
  const std::string path_ = dir_.file("metrics.jsonl");
};

TEST_F(PositionsTest, RowsThatAreHeldBackCount) {
  JsonlSink sink(path_);
  report(sink, 1, 200);
  Positions positions{{"other.log", "7"}};
  sink.note_position(positions);
  EXPECT_EQ(text(), lines(1, 200));
  EXPECT_THAT(positions, UnorderedElementsAre(Pair("other.log", "7"),
                                              Pair("metrics.jsonl", std::to_string(text().size()))));
}

TEST_F(PositionsTest, GoesBackInTheSameRunAndRowsComeAgain) {
  JsonlSink sink(path_);
  report(sink, 1, 3);
  const Positions positions = position_of(sink);
  report(sink, 4, 60);  // of which some are held back
  (void)sink.rewind(positions, Sink::Events::kDrop);
  EXPECT_EQ(text(), lines(1, 3));
  report(sink, 4, 6);
  sink.flush();
  EXPECT_EQ(text(), lines(1, 6));
  (void)sink.rewind(positions, Sink::Events::kDrop);
  (void)sink.rewind(positions, Sink::Events::kDrop);
  EXPECT_EQ(text(), lines(1, 3));
}

// What happened stays told where a run goes back by itself.
TEST_F(PositionsTest, EventsStayInTheMidstOfARun) {
  JsonlSink sink(path_);
  report(sink, 1, 3);
  const Positions positions = position_of(sink);
  report(sink, 4, 5);
  const EventRow first{.update = 5, .event = Spike{.window = 5, .what = "loss 9"}};
  const EventRow second{.update = 3, .event = Warning{"w"}};
  sink.event(first);
  report(sink, 6, 60);
  sink.event(second);
  report(sink, 61, 62);
  EXPECT_EQ(sink.rewind(positions, Sink::Events::kKeep), "");
  report(sink, 4, 4);
  sink.flush();
  const std::string events = event_row_json(first) + "\n" + event_row_json(second) + "\n";
  EXPECT_EQ(text(), lines(1, 3) + events + lines(4, 4));
  EXPECT_EQ(sink.rewind(positions, Sink::Events::kDrop), "");
  EXPECT_EQ(text(), lines(1, 3));
}

TEST_F(PositionsTest, GoesBackInTheNextRun) {
  Positions positions;
  {
    JsonlSink sink(path_);
    report(sink, 1, 3);
    positions = position_of(sink);
    report(sink, 4, 9);
  }
  dir_.write("metrics.jsonl", text() + "{\"window\":10,\"half of a ro");
  JsonlSink sink(path_);
  EXPECT_EQ(text(), lines(1, 9));
  (void)sink.rewind(positions, Sink::Events::kDrop);
  report(sink, 4, 5);
  sink.end({.update = 5});
  EXPECT_THAT(text(), ::testing::StartsWith(lines(1, 5) + "{\"event\":\"end\""));
}

// Somebody shortened the file: what is there stays, and what is missing is said.
TEST_F(PositionsTest, AShorterFileStaysAsItIsAndIsNamed) {
  const std::string here = std::to_string(lines(1, 2).size());
  dir_.write("metrics.jsonl", lines(1, 2) + "{\"half");
  JsonlSink sink(path_);
  for (const std::string& position :
       {std::to_string(lines(1, 5).size()), std::to_string(std::numeric_limits<int64_t>::max())}) {
    EXPECT_THAT(sink.rewind({{"metrics.jsonl", position}}, Sink::Events::kDrop),
                HasSubstr("metrics.jsonl has " + here + " of the " + position + " bytes"));
    EXPECT_EQ(text(), lines(1, 2));
  }
  EXPECT_EQ(sink.rewind({{"metrics.jsonl", here}}, Sink::Events::kDrop), "");
}

// Somebody edited the file: whole lines only, all the same.
TEST_F(PositionsTest, APositionInTheMidstOfALineDropsThatLine) {
  dir_.write("metrics.jsonl", lines(1, 5));
  JsonlSink sink(path_);
  (void)sink.rewind({{"metrics.jsonl", std::to_string(lines(1, 3).size() + 10)}}, Sink::Events::kDrop);
  EXPECT_EQ(text(), lines(1, 3));
  (void)sink.rewind({{"metrics.jsonl", "10"}}, Sink::Events::kDrop);
  EXPECT_EQ(text(), "");
}

TEST_F(PositionsTest, WithoutAPositionItBeginsAnewAndOldRowsAreKept) {
  dir_.write("metrics.jsonl", lines(1, 5));
  JsonlSink sink(path_);
  report(sink, 6, 60);
  EXPECT_THAT(sink.rewind({{"other.jsonl", "10"}}, Sink::Events::kDrop),
              HasSubstr("are in " + dir_.file("metrics-1.jsonl") + " now"));
  EXPECT_EQ(sink.rewind({}, Sink::Events::kDrop), "");
  EXPECT_EQ(dir_.read("metrics-1.jsonl").substr(0, lines(1, 5).size()), lines(1, 5));
  EXPECT_EQ(text(), "");
  report(sink, 1, 2);
  sink.flush();
  EXPECT_EQ(text(), lines(1, 2));
  EXPECT_THAT(sink.rewind({}, Sink::Events::kDrop), HasSubstr("metrics-2.jsonl"));
}

TEST_F(PositionsTest, APipeIsRefused) {
  ASSERT_EQ(mkfifo(dir_.file("pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of<std::system_error>([&] { const JsonlSink sink(dir_.file("pipe")); }),
              HasSubstr("cannot append to the pipe " + dir_.file("pipe")));
}

TEST_F(PositionsTest, AnythingButANumberIsAnErrorAndCutsNothing) {
  dir_.write("metrics.jsonl", lines(1, 5));
  JsonlSink sink(path_);
  for (const std::string bad :
       {"", "x", "10 bytes", " 10", "+10", "-1", "1e3", "10.0", "99999999999999999999"}) {
    EXPECT_THAT(message_of<CheckpointError>(
                    [&] { (void)sink.rewind({{"metrics.jsonl", bad}}, Sink::Events::kDrop); }),
                AllOf(HasSubstr("'" + bad + "' as its position in metrics.jsonl"),
                      HasSubstr("use another checkpoint")));
    EXPECT_EQ(text(), lines(1, 5));
  }
}

TEST_F(PositionsTest, APathWithoutAFolderHasItsNameToo) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir_.path());
  Positions positions;
  {
    JsonlSink sink("metrics.jsonl");
    report(sink, 1, 1);
    positions = position_of(sink);
  }
  std::filesystem::current_path(before);
  EXPECT_THAT(positions, UnorderedElementsAre(Pair("metrics.jsonl", std::to_string(lines(1, 1).size()))));
}

TEST_F(PositionsTest, ASinkListAsksEachAndAnOrdinarySinkHasNone) {
  SinkList sinks;
  sinks.add(std::make_unique<JsonlSink>(path_));
  sinks.add(std::make_unique<JsonlSink>(dir_.file("second.jsonl")));
  sinks.window(row(1));
  sinks.flush();
  Positions positions;
  sinks.note_position(positions);
  EXPECT_EQ(positions.size(), 2U);
  sinks.window(row(2));
  EXPECT_EQ(sinks.rewind(positions, Sink::Events::kDrop), "");
  sinks.flush();
  EXPECT_EQ(text(), lines(1, 1));
  EXPECT_EQ(dir_.read("second.jsonl"), lines(1, 1));
  positions["second.jsonl"] = "1000000";
  EXPECT_THAT(sinks.rewind(positions, Sink::Events::kDrop), ::testing::StartsWith("second.jsonl has "));
}

// What cannot be cut is left alone.
TEST(AppendFileCut, ADeviceHasNoSize) {
  AppendFile file("/dev/null");
  file.append("line\n");
  EXPECT_EQ(file.size(), 0);
  file.cut(0);
}

}  // namespace
}  // namespace gradstep::testing
