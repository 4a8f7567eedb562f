// Cases A7, B1, B2: the learning rate of each update.
#include "gradstep/step/lr_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "gradstep/base/error.h"
#include "support/golden.h"
#include "support/lin.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

TEST(LrSchedule, FollowsTheGoldenTable) {
  int64_t num_entries = 0;
  for (const std::string& line : golden_lines("lr_schedule.txt")) {
    std::istringstream text(line);
    std::string shape;
    LrSchedule schedule;
    int64_t k = 0;
    double lr = 0;
    text >> shape >> schedule.peak >> schedule.min >> schedule.warmup_steps >> schedule.total_steps >> k >>
        lr;
    ASSERT_FALSE(text.fail()) << line;
    schedule.shape = parse_lr_shape(shape);
    EXPECT_NEAR(schedule.at(k), lr, 1e-12 * std::abs(lr) + 1e-300) << line;
    ++num_entries;
  }
  EXPECT_GT(num_entries, 100);
}

TEST(LrSchedule, B1_TheFirstUpdateAlreadyMoves) {
  Lin lin;
  EngineOptions options = plain_sgd(1);
  options.schedule = {.shape = LrShape::kConstant, .peak = 1, .warmup_steps = 4};
  Engine engine(lin_task(lin), options, solo());
  std::vector<double> used;
  for (int i = 0; i < 4; ++i) {
    const float before = lin->w.item<float>();
    const StepReport report = engine.step(column({1}), no_targets(1));
    used.push_back(report.lr);
    EXPECT_EQ(static_cast<double>(before - lin->w.item<float>()), report.lr);
  }
  EXPECT_EQ(used, (std::vector<double>{0.25, 0.5, 0.75, 1.0}));
}

TEST(LrSchedule, B2_EdgesAreFiniteAndLongWarmUpIsRefused) {
  const std::vector<std::pair<int64_t, int64_t>> edges{{0, 1}, {1, 1}, {0, 10}, {10, 10}};
  for (const LrShape shape : {LrShape::kCosine, LrShape::kLinear, LrShape::kConstant}) {
    for (const auto& [warmup, total] : edges) {
      const LrSchedule schedule{
          .shape = shape, .peak = 1, .min = 0.1, .warmup_steps = warmup, .total_steps = total};
      validate(schedule);
      for (int64_t k = 1; k <= total + 3; ++k)
        EXPECT_TRUE(std::isfinite(schedule.at(k))) << warmup << " " << total;
      if (shape != LrShape::kConstant) {
        EXPECT_EQ(schedule.at(total + 1), 0.1);
      }
    }
  }
  const LrSchedule one{.peak = 1, .min = 0.1, .warmup_steps = 1, .total_steps = 1};
  EXPECT_EQ(one.at(1), 1.0);
  EXPECT_EQ((LrSchedule{.peak = 1, .min = 0.1, .total_steps = 1}).at(1), 0.1);
  for (const LrShape shape : {LrShape::kCosine, LrShape::kConstant}) {
    try {
      validate(LrSchedule{.shape = shape, .warmup_steps = 20, .total_steps = 10});
      ADD_FAILURE() << "accepted";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("20"));
      EXPECT_THAT(error.what(), HasSubstr("10"));
    }
  }
}

TEST(LrSchedule, A7_StepsAreUpdatesNotMicroBatches) {
  Lin lin;
  EngineOptions options = plain_sgd(1);
  options.schedule = {.shape = LrShape::kCosine, .peak = 1, .warmup_steps = 2, .total_steps = 8};
  Engine engine(lin_task(lin), options, solo());
  int64_t num_micro_batches = 0;
  for (int i = 0; i < 8; ++i) {
    const StepReport report = engine.step(at::ones({4, 1}), no_targets(4));
    num_micro_batches += report.num_micro_batches;
    EXPECT_GE(report.lr, 0.0);
    EXPECT_EQ(report.update, i + 1);
  }
  EXPECT_EQ(num_micro_batches, 32);
  EXPECT_EQ(engine.counters().updates, 8);
}

TEST(LrSchedule, NonsenseIsRefused) {
  EXPECT_THROW((void)parse_lr_shape("cosin"), ConfigError);
  EXPECT_THROW(validate(LrSchedule{.peak = 0.1, .min = 0.2, .total_steps = 5}), ConfigError);
  EXPECT_THROW(validate(LrSchedule{.peak = -1, .total_steps = 5}), ConfigError);
}

// Left at its default, the length would make every learning rate 0, and nothing would be learnt in silence.
TEST(LrSchedule, AForgottenLengthIsRefused) {
  for (const LrShape shape : {LrShape::kCosine, LrShape::kLinear})
    EXPECT_THROW(validate(LrSchedule{.shape = shape}), ConfigError);
  validate(LrSchedule{.shape = LrShape::kConstant});
  Lin lin;
  EXPECT_THROW(Engine(lin_task(lin), {}, solo()), ConfigError);
}

TEST(LrSchedule, AFunctionOfOnesOwnTakesThePlaceOfTheShapes) {
  EngineOptions options = plain_sgd(1);
  // No length and no peak: the shapes would refuse that.
  options.schedule = {.peak = -1, .function = [](int64_t k) { return k == 2 ? 0.5 : 1.0 / (1 << k); }};
  Lin lin;
  Engine engine(lin_task(lin), options, solo());
  EXPECT_EQ(engine.next_lr(), 0.5);
  for (const double lr : {0.5, 0.5, 0.125}) EXPECT_EQ(engine.step(column({1}), no_targets(1)).lr, lr);
  EXPECT_EQ(lin->w.item<float>(), -1.125F);
}

TEST(LrSchedule, AFunctionThatGivesNonsenseIsRefused) {
  for (const double bad : {-0.1, std::nan(""), std::numeric_limits<double>::infinity()}) {
    EngineOptions options = plain_sgd(1);
    options.schedule.function = [bad](int64_t k) { return k < 2 ? 1.0 : bad; };
    Lin lin;
    Engine engine(lin_task(lin), options, solo());
    engine.step(column({1}), no_targets(1));
    EXPECT_THROW(engine.step(column({1}), no_targets(1)), ConfigError);
    EXPECT_EQ(engine.counters().windows, 1);
    EXPECT_EQ(lin->w.item<float>(), -1.0F);
  }
}

}  // namespace
}  // namespace gradstep::testing
