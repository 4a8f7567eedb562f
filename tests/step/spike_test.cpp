// SpikeDetector by itself, and what the engine does about a spike.
#include "step/spike.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/lin.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// What the detector says of the two values, in words; empty: nothing.
std::string said(SpikeDetector& detector, double loss, double grad_norm) {
  const std::optional<SpikeFinding> finding = detector.observe(loss, grad_norm);
  return finding ? to_string(*finding) : "";
}

// Noisy losses and norms with a jump here and there.
std::vector<std::pair<double, double>> noisy(int n) {
  std::vector<std::pair<double, double>> values;
  for (int i = 0; i < n; ++i) {
    const double loss = 2 + 0.1 * std::sin(i * 1.7) + (i % 37 == 36 ? 5 : 0);
    const double norm = 1 + 0.2 * std::cos(i * 2.3) + (i % 53 == 52 ? 9 : 0);
    values.emplace_back(loss, i % 11 == 10 ? kNan : norm);
  }
  return values;
}

TEST(SpikeDetector, JudgesOnlyWithAFullWindow) {
  SpikeDetector detector({.z_score = 3, .window = 4});
  for (const double loss : {1.0, 2.0, 900.0, 1.0}) EXPECT_EQ(said(detector, loss, 1), "");
  EXPECT_THAT(said(detector, 9000, 1), HasSubstr("deviations above the mean 226 of 4 windows"));
}

TEST(SpikeDetector, SaysWhatIsOddAboutLossOrNorm) {
  SpikeDetector detector({.z_score = 6, .window = 2});
  for (const double value : {1.0, 3.0}) EXPECT_EQ(said(detector, value, value), "");
  EXPECT_EQ(said(detector, 9, 2), "loss 9 is 7 deviations above the mean 2 of 2 windows");
  SpikeDetector by_norm({.z_score = 6, .window = 2});
  for (const double value : {1.0, 3.0}) EXPECT_EQ(said(by_norm, value, value), "");
  EXPECT_EQ(said(by_norm, 2, 9), "gradient norm 9 is 7 deviations above the mean 2 of 2 windows");
}

TEST(SpikeDetector, AFallIsNoSpike) {
  SpikeDetector detector({.z_score = 2, .window = 2});
  for (const double value : {5.0, 5.1, 0.01}) EXPECT_EQ(said(detector, value, value), "");
}

TEST(SpikeDetector, AConstantHistoryTakesSmallChangesAndStillSeesLargeOnes) {
  SpikeDetector detector({.z_score = 6, .window = 8});
  for (int i = 0; i < 8; ++i) EXPECT_EQ(said(detector, 2, 0), "");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(said(detector, 2 + i * 1e-7, 0), "") << i;
  EXPECT_THAT(said(detector, 3, 0), HasSubstr("loss 3 is 500 deviations"));
  // All zeros tell nothing about what is large.
  EXPECT_EQ(said(detector, 2, 1e-30), "");
}

TEST(SpikeDetector, ANewLevelIsLearnt) {
  SpikeDetector detector({.z_score = 6, .window = 16});
  for (int i = 0; i < 16; ++i) EXPECT_EQ(said(detector, 1, 1), "");
  int spikes = 0;
  for (int i = 0; i < 100; ++i) spikes += said(detector, 10, 1).empty() ? 0 : 1;
  EXPECT_GE(spikes, 1);
  EXPECT_LE(spikes, 2);
}

TEST(SpikeDetector, WhatIsNotFiniteIsForgotten) {
  SpikeDetector detector({.z_score = 6, .window = 2});
  EXPECT_EQ(said(detector, kNan, 1), "");
  EXPECT_EQ(said(detector, 1, kNan), "");
  EXPECT_EQ(detector.history(), SpikeHistory{});
}

TEST(SpikeDetector, OffRemembersNothing) {
  SpikeDetector detector({.z_score = 0});
  for (const double loss : {1.0, 1.0, 1e9}) EXPECT_EQ(said(detector, loss, 1), "");
  EXPECT_EQ(detector.history(), SpikeHistory{});
}

TEST(SpikeDetector, ResumedAtAnyPlaceItJudgesAsUnbroken) {
  const SpikeOptions options{.z_score = 4, .window = 16};
  const auto values = noisy(120);
  SpikeDetector unbroken(options);
  std::vector<std::string> expected;
  for (const auto& [loss, norm] : values) expected.push_back(said(unbroken, loss, norm));
  EXPECT_GE(std::ranges::count_if(expected, [](const std::string& text) { return !text.empty(); }), 2);
  for (size_t stop = 0; stop < values.size(); stop += 7) {
    SpikeDetector first(options);
    for (size_t i = 0; i < stop; ++i) (void)said(first, values[i].first, values[i].second);
    SpikeDetector second(options);
    second.restore(first.history());
    for (size_t i = stop; i < values.size(); ++i)
      EXPECT_EQ(said(second, values[i].first, values[i].second), expected[i]) << stop << ' ' << i;
    EXPECT_EQ(second.history(), unbroken.history());
  }
}

TEST(SpikeDetector, ALongerHistoryIsCutToTheNewest) {
  SpikeDetector detector({.z_score = 4, .window = 2});
  detector.restore({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(detector.history(), (SpikeHistory{{2, 3}, {5, 6}}));
}

EngineOptions with_spikes(Precision precision = Precision::kFp32) {
  return {.schedule = {.shape = LrShape::kConstant, .peak = 0.1},
          .precision = precision,
          .scaler = {.init_scale = 8, .growth_interval = 4},
          .micro_batch = 2,
          .max_skips_in_a_row = 3,
          .ema_decay = 0.5,
          .spikes = {.z_score = 6, .window = 4}};
}

TEST(Spike, ChangesNothingNotEvenTheScale) {
  for (const Precision precision : {Precision::kFp32, Precision::kFp16}) {
    Dot dot(at::ones({1, 2}));
    Engine engine(dot_task(dot), with_spikes(precision), solo());
    const at::Tensor usual = at::ones({3, 2});
    for (int i = 0; i < 6; ++i) EXPECT_EQ(engine.step(usual, no_targets(3)).spike, std::nullopt);
    std::vector<at::Tensor> before = everything(engine);
    before.push_back(engine.averages()[0].second.clone());
    const EngineState state = engine.state();
    const StepReport report = engine.step(usual * 50, no_targets(3));
    ASSERT_TRUE(report.spike);
    EXPECT_EQ(report.outcome, StepOutcome::kSpike);
    EXPECT_THAT(to_string(*report.spike), HasSubstr("deviations above the mean"));
    EXPECT_TRUE(report.skipped());
    EXPECT_FALSE(report.diverged);
    EXPECT_TRUE(report.first_non_finite.empty());
    EXPECT_TRUE(report.modules.empty());
    EXPECT_FLOAT_EQ(static_cast<float>(report.grad_norm), 70.710678F);
    EXPECT_EQ(report.update, 6);
    EXPECT_EQ(report.window, 7);
    EXPECT_EQ(report.skipped_total, 1);
    std::vector<at::Tensor> after = everything(engine);
    after.push_back(engine.averages()[0].second.clone());
    EXPECT_TRUE(same_bytes(after, before));
    EXPECT_EQ(engine.state().loss_scale, state.loss_scale);
    EXPECT_EQ(engine.state().num_good_updates, state.num_good_updates);
    EXPECT_FALSE(engine.step(usual, no_targets(3)).skipped());
  }
}

TEST(Spike, RestoresBatchNormStatistics) {
  torch::nn::Sequential model(torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 3));
  torch::manual_seed(0);
  EngineOptions options = with_spikes();
  options.spikes.z_score = 3;
  Engine engine(classification_task(model), options, solo());
  const at::Tensor inputs = at::randn({4, 4});
  for (int i = 0; i < 6; ++i) engine.step(inputs, no_targets(4));
  std::vector<at::Tensor> before;
  for (const at::Tensor& buffer : model->buffers()) before.push_back(buffer.clone());
  const StepReport report = engine.step(inputs, at::full({4}, 2, at::kLong));  // labels it has not seen
  EXPECT_TRUE(report.spike);
  EXPECT_TRUE(same_bytes(model->buffers(), before));
}

TEST(Spike, TheFirstNonFiniteWindowOfARowIsLookedInto) {
  Dot dot(at::ones({1, 2}));
  Engine engine(dot_task(dot), with_spikes(), solo());
  for (int i = 0; i < 6; ++i) engine.step(at::ones({3, 2}), no_targets(3));
  EXPECT_NE(engine.step(at::full({3, 2}, 50.0F), no_targets(3)).spike, std::nullopt);
  const StepReport second = engine.step(at::full({3, 2}, kNan), no_targets(3));
  EXPECT_THAT(second.first_non_finite, HasSubstr("parameter w"));
  const StepReport third = engine.step(at::full({3, 2}, kNan), no_targets(3));
  EXPECT_TRUE(third.diverged);
}

}  // namespace
}  // namespace gradstep::testing
