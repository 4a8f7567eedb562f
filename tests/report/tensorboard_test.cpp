// no torch
// What TensorBoard shows of a run: each update once, whatever was skipped, killed, resumed or rolled back.
// tests/e2e/test_tensorboard.py reads the same with TensorBoard itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include "gradstep/report/sinks.h"
#include "support/event_points.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

WindowRow row_of(int64_t update, double loss) {
  WindowRow row;
  row.step = {.window = update, .update = update, .loss = loss, .lr = 0.25, .grad_norm = 2};
  row.samples_per_s = 1000;
  return row;
}

class TensorBoardTest : public ::testing::Test {
 protected:
  // What a start does that goes on after `first_update`; `loss` tells starts apart.
  void start(int64_t first_update) {
    sink_.emplace(folder_);
    sink_->begin({.settings = {{"lr", "0.1"}, {"resume", "a|b"}}, .first_update = first_update});
  }
  void windows(int64_t first, int64_t last, double loss) {
    for (int64_t update = first; update <= last; ++update) sink_->window(row_of(update, loss));
  }
  // As a kill does after rows have reached the file.
  void kill() {
    sink_->flush();
    sink_.reset();
  }
  [[nodiscard]] Curve curve(const std::string& tag) {
    if (sink_) sink_->flush();
    return shown_points(folder_).curves[tag];
  }
  static Curve expected(const std::vector<std::pair<int64_t, double>>& points) {
    Curve curve;
    for (const auto& [step, value] : points) curve.emplace_back(step, static_cast<float>(value));
    return curve;
  }

  ScratchDir dir_;
  const std::string folder_ = dir_.file("tensorboard");
  std::optional<TensorBoardSink> sink_;
};

TEST_F(TensorBoardTest, CurvesOfARun) {
  start(0);
  windows(1, 2, 0.5);
  sink_->eval({.update = 2, .val_loss = 0.75, .metrics = {{"acc", 0.5}, {"top5", 1}}});
  sink_->end({});
  EXPECT_THAT(
      shown_points(folder_).curves,
      UnorderedElementsAre(Pair("train/loss", expected({{1, 0.5}, {2, 0.5}})),
                           Pair("train/lr", expected({{1, 0.25}, {2, 0.25}})),
                           Pair("train/grad_norm", expected({{1, 2}, {2, 2}})),
                           Pair("perf/samples_per_s", expected({{1, 1000}, {2, 1000}})),
                           Pair("val/loss", expected({{2, 0.75}})), Pair("val/acc", expected({{2, 0.5}})),
                           Pair("val/top5", expected({{2, 1}}))));
}

TEST_F(TensorBoardTest, AnAverageHasCurvesOfItsOwn) {
  start(0);
  sink_->eval({.update = 2, .ema_val_loss = 0.5, .ema_metrics = {{"acc", 0.75}}});
  EXPECT_EQ(curve("val_ema/loss"), expected({{2, 0.5}}));
  EXPECT_EQ(curve("val_ema/acc"), expected({{2, 0.75}}));
}

TEST_F(TensorBoardTest, SettingsAndPlanAreTexts) {
  start(0);
  kill();
  const auto texts = shown_points(folder_).texts;
  EXPECT_THAT(texts, UnorderedElementsAre(Key("settings"), Key("plan")));
  EXPECT_EQ(texts.at("settings"), "| setting | value |\n| --- | --- |\n| lr | 0.1 |\n| resume | a\\|b |\n");
  EXPECT_THAT(texts.at("plan"), HasSubstr("    batch"));
}

TEST_F(TensorBoardTest, ASkippedWindowAddsNoPoint) {
  start(0);
  windows(1, 1, 0.5);
  WindowRow skipped = row_of(1, NAN);
  skipped.step.outcome = StepOutcome::kNotFinite;
  sink_->window(skipped);
  windows(2, 2, 0.25);
  EXPECT_EQ(curve("train/loss"), expected({{1, 0.5}, {2, 0.25}}));
}

TEST_F(TensorBoardTest, TheLossScaleShowsWhereThereIsOne) {
  start(0);
  windows(1, 1, 0.5);
  EXPECT_EQ(curve("train/loss_scale"), Curve{});
  WindowRow scaled = row_of(2, 0.5);
  scaled.step.loss_scale = 1024;
  scaled.samples_per_s = INFINITY;
  sink_->window(scaled);
  EXPECT_EQ(curve("train/loss_scale"), expected({{2, 1024}}));
  EXPECT_EQ(curve("perf/samples_per_s"), expected({{1, 1000}}));
}

// Case K1.
TEST_F(TensorBoardTest, K1_EachUpdateIsThereOnceAfterKills) {
  start(0);
  windows(1, 5, 1);  // killed before its first checkpoint
  kill();
  start(0);
  windows(1, 7, 2);  // checkpoints after 4
  kill();
  start(4);
  windows(5, 6, 3);
  kill();
  start(4);
  windows(5, 8, 4);
  EXPECT_EQ(curve("train/loss"), expected({{1, 2}, {2, 2}, {3, 2}, {4, 2}, {5, 4}, {6, 4}, {7, 4}, {8, 4}}));
  EXPECT_THAT(event_files(folder_), SizeIs(4));
}

TEST_F(TensorBoardTest, ARollbackDropsWhatCameLater) {
  start(0);
  windows(1, 6, 1);
  sink_->event({.update = 6, .event = Warning{"of no matter"}});
  sink_->event({.update = 4, .event = RolledBack{.window = 7}});
  windows(5, 7, 2);
  EXPECT_EQ(curve("train/loss"), expected({{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 2}, {6, 2}, {7, 2}}));
  sink_->event({.update = 0, .event = RolledBack{.window = 8}});
  windows(1, 1, 3);
  EXPECT_EQ(curve("train/loss"), expected({{1, 3}}));
}

// The evaluation of update 4 may be made before its checkpoint, or after it: then it is made again.
TEST_F(TensorBoardTest, AnEvaluationThatIsMadeAgainIsShownOnce) {
  start(0);
  windows(1, 4, 1);
  sink_->eval({.update = 4, .val_loss = 1});
  windows(5, 6, 1);
  sink_->eval({.update = 6, .val_loss = 1});
  kill();
  for (const int starts : {1, 2, 3}) {
    start(4);
    sink_->eval({.update = 4, .val_loss = 1});
    windows(5, 6, 1);
    sink_->eval({.update = 6, .val_loss = 1});
    sink_->eval({.update = 6, .val_loss = 1});  // skipped windows only lie between
    kill();
    EXPECT_EQ(curve("val/loss"), expected({{4, 1}, {6, 1}})) << starts;
  }
}

TEST_F(TensorBoardTest, AnEvaluationThatWasDroppedIsShownWhenItComesAgain) {
  start(0);
  windows(1, 4, 1);
  sink_->eval({.update = 4, .val_loss = 1});
  kill();
  start(2);  // drops it
  kill();
  start(4);  // as from a checkpoint of an evaluation that no file here has
  sink_->eval({.update = 4, .val_loss = 2});
  EXPECT_EQ(curve("val/loss"), expected({{4, 2}}));
}

TEST_F(TensorBoardTest, TheTailOfAKilledStartHidesNothing) {
  start(0);
  windows(1, 3, 1);
  kill();
  const std::string path = event_files(folder_).at(0);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 5);
  start(2);
  windows(3, 4, 2);
  EXPECT_EQ(curve("train/loss"), expected({{1, 1}, {2, 1}, {3, 2}, {4, 2}}));
}

TEST_F(TensorBoardTest, AFolderThatCannotBeMadeIsAnError) {
  dir_.write("tensorboard", "a file");
  EXPECT_THAT(message_of<std::system_error>([&] { start(0); }), HasSubstr(folder_));
  EXPECT_THAT(message_of<std::system_error>([&] { windows(1, 1, 1); }), Not(HasSubstr("unknown")));
}

// What is appended after that is lost, or has no beginning: said by the next call that writes, even the last.
TEST_F(TensorBoardTest, AFolderThatIsRemovedOrAFileThatIsEmptiedIsAnError) {
  start(0);
  std::filesystem::remove_all(folder_);
  windows(1, 1, 1);
  EXPECT_THAT(message_of<std::system_error>([&] { sink_->flush(); }), HasSubstr("which was removed during"));
  start(1);
  const std::string path = event_files(folder_).at(0);
  std::filesystem::resize_file(path, 0);
  EXPECT_THAT(message_of<std::system_error>([&] { sink_->end({}); }),
              HasSubstr("which was cut short during"));
  EXPECT_EQ(std::filesystem::file_size(path), 0U);
}

TEST_F(TensorBoardTest, ARemovedFolderIsOneWarningAndTheRunGoesOn) {
  SinkList sinks;
  sinks.add_best_effort("tensorboard", std::make_unique<TensorBoardSink>(folder_), {.close_seconds = 60});
  sinks.begin({});
  while (event_files(folder_).empty()) std::this_thread::yield();
  std::filesystem::remove_all(folder_);
  for (int64_t update = 1; update <= 3; ++update) sinks.window(row_of(update, 1));
  sinks.end({});
  sinks.close();
  EXPECT_THAT(sinks.take_warnings(), ElementsAre(HasSubstr("which was removed during the run")));
}

}  // namespace
}  // namespace gradstep::testing
