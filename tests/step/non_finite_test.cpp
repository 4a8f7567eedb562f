// Cases B5, D2, D3 and the observer that names where a non-finite value first appeared.
#include "step/non_finite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/lin.h"
#include "support/thread_world.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

EngineOptions adamw(Precision precision, double clip = 0) {
  return {.schedule = {.shape = LrShape::kCosine, .peak = 0.1, .warmup_steps = 4, .total_steps = 20},
          .precision = precision,
          .micro_batch = 2,
          .clip_grad = clip};
}

TEST(Skip, B5_InfAtUpdate3ChangesNothingButTheScale) {
  Dot dot(at::ones({1, 2}));
  Engine engine(dot_task(dot), adamw(Precision::kFp16), solo());
  const at::Tensor clean = at::full({2, 2}, 0.5F);
  engine.step(clean, no_targets(2));
  engine.step(clean, no_targets(2));
  const std::vector<at::Tensor> before = everything(engine);
  at::Tensor bad = clean.clone();
  bad[1][0] = kInf;
  const StepReport skipped = engine.step(bad, no_targets(2));
  EXPECT_TRUE(skipped.skipped());
  EXPECT_EQ(skipped.skipped_total, 1);
  EXPECT_EQ(skipped.update, 2);
  EXPECT_EQ(skipped.window, 3);
  EXPECT_EQ(skipped.loss_scale, 65536.0);
  EXPECT_TRUE(same_bytes(everything(engine), before));
  const StepReport next = engine.step(clean, no_targets(2));
  EXPECT_EQ(next.loss_scale, 32768.0);
  EXPECT_EQ(next.lr, skipped.lr);
  EXPECT_EQ(next.update, 3);
  EXPECT_FALSE(next.skipped());
}

// Ten parameters, of which the last but two gets a gradient that is not finite.
struct TenImpl : torch::nn::Module {
  TenImpl() {
    for (int i = 0; i < 10; ++i) w.push_back(register_parameter("w" + std::to_string(i), at::ones({2, 2})));
  }
  std::vector<at::Tensor> w;
};
TORCH_MODULE(Ten);

Task ten_task(Ten ten) {
  Task task;
  task.module = ten.ptr();
  task.forward = [ten](const Batch& batch) mutable {
    at::Tensor sum = at::zeros({});
    for (size_t i = 0; i < 10; ++i)
      sum = sum + (ten->w[i] * batch.inputs.narrow(1, static_cast<int64_t>(i), 1).sum()).sum();
    return sum;
  };
  task.loss_sum = [](const at::Tensor& outputs, const Batch&) { return outputs.to(at::kFloat); };
  return task;
}

void expect_skip_and_recovery(World& world, Precision precision, bool bad_rank) {
  Ten ten;
  Engine engine(ten_task(ten), adamw(precision, /*clip=*/1.0), world);
  const at::Tensor clean = at::full({3, 10}, 0.25F);
  engine.step(clean, no_targets(3));
  const std::vector<at::Tensor> before = everything(engine);
  at::Tensor bad = clean.clone();
  if (bad_rank) bad[2][7] = kNan;  // in the last micro-batch
  EXPECT_TRUE(engine.step(bad, no_targets(3)).skipped());
  EXPECT_TRUE(same_bytes(everything(engine), before));
  for (const auto& [name, parameter] : engine.optimizer().parameters())
    EXPECT_FALSE(parameter.grad().defined()) << name;
  EXPECT_FALSE(engine.step(clean, no_targets(3)).skipped());
  EXPECT_FALSE(same_bytes(everything(engine), before));
}

TEST(Skip, D2_OneNanInOneOfTenGradientsInEveryPrecision) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    SCOPED_TRACE(to_string(precision));
    expect_skip_and_recovery(solo(), precision, true);
  }
}

TEST(Skip, D2_NanOnOneOfTwoRanks) {
  for (const int64_t bad_rank : {0, 1}) {
    run_ranks(2, [&](World& world) {
      expect_skip_and_recovery(world, Precision::kFp32, world.rank() == bad_rank);
    });
  }
}

TEST(Skip, ANormThatOverflowsCountsAsNotFinite) {
  Dot dot(at::ones({1, 2}));
  Engine engine(dot_task(dot), adamw(Precision::kFp32), solo());
  const std::vector<at::Tensor> before = everything(engine);
  EXPECT_TRUE(engine.step(at::full({1, 2}, 3e38F), no_targets(1)).skipped());
  EXPECT_TRUE(same_bytes(everything(engine), before));
}

TEST(Skip, SgdMomentumIsUntouched) {
  Dot dot(at::ones({1, 2}));
  EngineOptions options = adamw(Precision::kFp32);
  options.optimizer = {.kind = OptimizerKind::kSgd, .momentum = 0.9, .nesterov = true};
  Engine engine(dot_task(dot), options, solo());
  for (const float value : {kNan, 1.0F, kInf}) {
    const std::vector<at::Tensor> before = everything(engine);
    const bool skipped = engine.step(at::full({1, 2}, value), no_targets(1)).skipped();
    EXPECT_EQ(skipped, !std::isfinite(value));
    EXPECT_EQ(same_bytes(everything(engine), before), skipped);
  }
}

TEST(Skip, BatchNormStatisticsAreUntouched) {
  torch::nn::Sequential model(torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 3));
  Engine engine(classification_task(model), adamw(Precision::kFp32), solo());
  engine.step(at::randn({4, 4}), no_targets(4));
  std::vector<at::Tensor> before;
  for (const at::Tensor& buffer : model->buffers()) before.push_back(buffer.clone());
  EXPECT_TRUE(engine.step(at::full({4, 4}, kNan), no_targets(4)).skipped());
  EXPECT_TRUE(same_bytes(model->buffers(), before));
  engine.step(at::randn({4, 4}), no_targets(4));
  EXPECT_FALSE(same_bytes(model->buffers(), before));
}

TEST(Diverged, D3_AlwaysNanEndsAfterTwentySkipsWithTheScaleAtItsFloor) {
  torch::nn::Sequential model = small_classifier();
  Engine engine(classification_task(model), adamw(Precision::kFp16), solo());
  const at::Tensor bad = at::full({2, 4}, kNan);
  for (int i = 1; i <= 20; ++i) {
    const StepReport report = engine.step(bad, no_targets(2));
    EXPECT_EQ(report.diverged, i == 20);
    EXPECT_GE(report.loss_scale, 1.0);
    if (i == 1 || i == 20) {
      EXPECT_THAT(report.first_non_finite, HasSubstr("0.weight (module 0)"));
    }
    if (i == 18) {
      EXPECT_EQ(report.loss_scale, 1.0);
    }
  }
  EXPECT_EQ(engine.state().loss_scale, 1.0);
  EXPECT_EQ(engine.counters().updates, 0);
}

TEST(Diverged, ACleanUpdateStartsTheCountAgain) {
  Dot dot(at::ones({1, 2}));
  Engine engine(dot_task(dot), adamw(Precision::kFp32), solo());
  const at::Tensor bad = at::full({1, 2}, kNan);
  for (int i = 0; i < 19; ++i) engine.step(bad, no_targets(1));
  engine.step(at::ones({1, 2}), no_targets(1));
  for (int i = 0; i < 19; ++i) EXPECT_FALSE(engine.step(bad, no_targets(1)).diverged);
  EXPECT_TRUE(engine.step(bad, no_targets(1)).diverged);
}

TEST(NonFiniteFinder, NamesTheLayerInTheMiddle) {
  torch::nn::Sequential model(torch::nn::Linear(4, 4), torch::nn::Linear(4, 4), torch::nn::Linear(4, 2));
  {
    const at::NoGradGuard no_grad;
    model->parameters()[2].mul_(3e38);  // layer 1 overflows
  }
  NamedTensors parameters;
  for (const auto& item : model->named_parameters()) parameters.emplace_back(item.key(), item.value());
  const NonFiniteFinder finder(parameters);
  EXPECT_EQ(finder.first(), "");
  model->forward(at::ones({2, 4}) * 1e3);
  EXPECT_THAT(finder.first(), HasSubstr("1.weight (module 1)"));
}

TEST(NonFiniteFinder, AnAttentionMaskIsNotTheCulprit) {
  at::Tensor w = at::ones({2, 2}).requires_grad_();
  const NonFiniteFinder finder({{"block.w", w}});
  const at::Tensor mask = at::full({2, 2}, -kInf).triu(1);
  const at::Tensor probabilities = (at::ones({2, 2}).mm(w) + mask).softmax(1);
  at::Tensor loss = (probabilities.sum() - 3).log();  // log of a negative number
  EXPECT_THAT(finder.first(), HasSubstr("aten::log"));
}

// float8 has no arithmetic of its own.
TEST(NonFiniteFinder, LooksIntoFloat8) {
  const at::Tensor w = at::ones({2, 2}).requires_grad_();
  const at::Tensor large = at::full({2, 2}, 3e38F);
  const NonFiniteFinder finder({{"fc.w", w}});
  ::testing::internal::CaptureStderr();
  at::Tensor sums = large.mm(w);
  sums = sums.to(at::kFloat8_e4m3fn).to(at::kFloat);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(finder.first(), HasSubstr("aten::mm with parameter fc.w"));
}

TEST(NonFiniteFinder, ABrokenParameterIsNamedItself) {
  const NonFiniteFinder finder({{"fc.weight", at::ones({2})}, {"fc.bias", at::full({1}, kNan)}});
  EXPECT_EQ(finder.first(), "parameter fc.bias (module fc)");
}

}  // namespace
}  // namespace gradstep::testing
