// Cases D: autocast on and off, fp32 masters, clip after unscale.
#include "gradstep/step/precision.h"

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/machine.h"
#include "gradstep/base/error.h"
#include "step/precision_probe.h"
#include "support/lin.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

EngineOptions constant(Precision precision, double lr = 1e-2) {
  return {.schedule = {.shape = LrShape::kConstant, .peak = lr}, .precision = precision, .micro_batch = 4};
}

TEST(Precision, D1_ClipSeesUnscaledGradients) {
  Dot dot(at::zeros({1, 2}));
  EngineOptions options = plain_sgd(1);
  options.precision = Precision::kFp16;
  options.scaler.init_scale = 1024;
  options.clip_grad = 1;
  Engine engine(dot_task(dot), options, solo());
  const StepReport report = engine.step(torch::tensor({{3.0F, 4.0F}}), no_targets(1));
  EXPECT_EQ(report.grad_norm, 5.0);
  EXPECT_EQ(report.loss_scale, 1024.0);
  EXPECT_NEAR(dot->w[0][0].item<double>(), -0.6, 1e-6);
  EXPECT_NEAR(dot->w[0][1].item<double>(), -0.8, 1e-6);
}

TEST(Precision, D4_Fp16ParametersAreRefusedByName) {
  torch::nn::Sequential model = small_classifier();
  model[2]->to(torch::kHalf);
  try {
    Engine engine(classification_task(model), constant(Precision::kFp16), solo());
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("2.weight"));
    EXPECT_EQ(error.exit_code(), ExitCode::kUsage);
  }
}

TEST(Precision, D7_MastersAreFp32) {
  // Updates of 6e-4 are lost in bf16 near 1, whose neighbours are 0.004 away.
  Dot dot(at::ones({1, 1}));
  Engine engine(dot_task(dot), constant(Precision::kBf16, 6e-4), solo());
  for (int i = 0; i < 100; ++i) engine.step(at::ones({1, 1}), no_targets(1));
  EXPECT_GT(std::abs(dot->w.item<double>() - 1.0), 0.05);
  EXPECT_EQ(dot->w.scalar_type(), at::kFloat);
}

// Gradients of two micro-batches with something done between them.
std::vector<at::Tensor> gradients_with(const std::function<void(torch::nn::Sequential&)>& between) {
  torch::nn::Sequential model = small_classifier();
  for (int micro = 0; micro < 2; ++micro) {
    at::Tensor loss;
    {
      const AutocastGuard autocast(at::kCPU, Precision::kBf16);
      loss = cross_entropy_sum(model->forward(at::ones({2, 4})), no_targets(2));
      between(model);  // inside the training's autocast, after its casts are cached
    }
    loss.backward();
  }
  std::vector<at::Tensor> grads;
  for (const at::Tensor& parameter : model->parameters()) grads.push_back(parameter.grad());
  return grads;
}

TEST(Precision, D10_EvaluationBetweenMicroBatchesDropsNoGradient) {
  const auto evaluate = [](torch::nn::Sequential& model) {
    const at::NoGradGuard no_grad;
    const AutocastGuard autocast(at::kCPU, Precision::kBf16, /*cache=*/false);
    model->forward(at::ones({3, 4}));
  };
  const auto with = gradients_with(evaluate);
  const auto without = gradients_with([](torch::nn::Sequential&) {});
  ASSERT_EQ(with.size(), without.size());
  for (const at::Tensor& grad : with) ASSERT_TRUE(grad.defined());
  EXPECT_TRUE(same_bytes(with, without));
}

TEST(Precision, D10_TheCacheIsEmptyAfterwards) {
  at::Tensor w = at::ones({2, 2}).requires_grad_();
  const auto cast = [&] { return at::autocast::cached_cast(at::kBFloat16, w, at::kCPU); };
  at::Tensor first;
  {
    const AutocastGuard autocast(at::kCPU, Precision::kBf16);
    first = cast();
    EXPECT_TRUE(first.is_same(cast())) << "within a guard a weight is cast once";
  }
  const AutocastGuard autocast(at::kCPU, Precision::kBf16);
  EXPECT_FALSE(first.is_same(cast())) << "the cast of an earlier guard is gone";
}

TEST(Precision, D11_TheNextForwardUsesTheNewWeights) {
  torch::nn::Sequential model = small_classifier();
  Engine engine(classification_task(model), constant(Precision::kBf16, 0.1), solo());
  const at::Tensor x = at::ones({4, 4});
  double last = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 10; ++i) {
    const double loss = engine.step(x, no_targets(4)).loss;
    EXPECT_LT(loss, last) << i;
    last = loss;
  }
}

TEST(Precision, D11_TenThousandMicroBatchesKeepMemoryFlat) {
  torch::nn::Sequential model(torch::nn::Linear(64, 256), torch::nn::Linear(256, 3));
  EngineOptions options = constant(Precision::kBf16);
  options.micro_batch = 1;
  Engine engine(classification_task(model), options, solo());
  const at::Tensor x = at::ones({100, 64});
  const auto steps = [&](int n) {
    for (int i = 0; i < n; ++i) engine.step(x, no_targets(100));
  };
  steps(10);
  const int64_t before = resident_bytes();
  steps(100);
  // A cast of these weights is 34 kB: kept each time, it would add up to 340 MB.
  EXPECT_LT(resident_bytes() - before, int64_t{8} << 20);
}

TEST(Precision, D11_AnExceptionInForwardLeavesAutocastOffAndTheWindowCanBeTriedAgain) {
  torch::nn::Sequential model = small_classifier();
  Task task = classification_task(model);
  bool fail = true;
  const auto forward = task.forward;
  int micro = 0;
  task.forward = [&](const Batch& batch) {
    at::Tensor out = forward(batch);
    if (fail && ++micro == 2) throw std::runtime_error("user code");
    return out;
  };
  Engine engine(task, constant(Precision::kBf16), solo());
  const at::Tensor x = at::randn({8, 4});
  EXPECT_THROW(engine.step(x, no_targets(8)), std::runtime_error);
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  for (const auto& [name, parameter] : engine.optimizer().parameters())
    EXPECT_FALSE(parameter.grad().defined()) << name;
  EXPECT_EQ(engine.counters().windows, 0);
  fail = false;
  engine.step(x, no_targets(8));

  torch::nn::Sequential twin = small_classifier();
  Engine unbroken(classification_task(twin), constant(Precision::kBf16), solo());
  unbroken.step(x, no_targets(8));
  EXPECT_TRUE(same_bytes(everything(engine), everything(unbroken)));
}

// Not in forward, and in the second micro-batch.
TEST(Precision, D11_AnExceptionAnywhereInAWindowUndoesIt) {
  torch::nn::Sequential model(torch::nn::BatchNorm1d(4), torch::nn::Linear(4, 3));
  Task task = classification_task(model);
  int num_losses = 0;
  task.loss_sum = [&num_losses, loss_sum = task.loss_sum](const at::Tensor& outputs, const Batch& batch) {
    TORCH_CHECK(++num_losses != 2, "the user's own");
    return loss_sum(outputs, batch);
  };
  Engine engine(task, constant(Precision::kFp32), solo());
  std::vector<at::Tensor> before;
  for (const at::Tensor& buffer : model->buffers()) before.push_back(buffer.clone());
  EXPECT_THROW(engine.step(at::randn({8, 4}), no_targets(8)), c10::Error);
  EXPECT_EQ(num_losses, 2);
  for (const at::Tensor& parameter : model->parameters()) EXPECT_FALSE(parameter.grad().defined());
  EXPECT_TRUE(same_bytes(model->buffers(), before));
  EXPECT_EQ(engine.counters().windows, 0);
}

TEST(Precision, GuardsNestAndRestore) {
  const AutocastGuard outer(at::kCPU, Precision::kBf16);
  {
    const AutocastGuard inner(at::kCPU, Precision::kFp32);
    EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  }
  EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_TRUE(at::autocast::is_autocast_cache_enabled());
}

TEST(Precision, TextsAreReadBackAndOthersRefused) {
  for (const Precision p : {Precision::kFp32, Precision::kBf16, Precision::kFp16})
    EXPECT_EQ(parse_precision(to_string(p)), p);
  EXPECT_THROW((void)parse_precision("fp64"), ConfigError);
  EXPECT_THROW((void)parse_matmul("mkl"), ConfigError);
}

TEST(PrecisionProbe, LeavesNoTrace) {
  torch::nn::Sequential model(torch::nn::BatchNorm1d(4), torch::nn::Dropout(0.5), torch::nn::Linear(4, 3));
  const Task task = classification_task(model);
  std::vector<at::Tensor> before;
  for (const at::Tensor& t : model->parameters()) before.push_back(t.detach().clone());
  for (const at::Tensor& t : model->buffers()) before.push_back(t.clone());
  const Batch micro{at::randn({8, 4}), no_targets(8)};
  torch::manual_seed(5);
  const at::Tensor drawn = at::rand({3});
  torch::manual_seed(5);
  const PrecisionChoice choice = choose_precision(task, micro, std::nullopt, std::nullopt);
  EXPECT_TRUE(same_bytes(at::rand({3}), drawn));
  std::vector<at::Tensor> after;
  for (const at::Tensor& t : model->parameters()) {
    EXPECT_FALSE(t.grad().defined());
    after.push_back(t.detach());
  }
  for (const at::Tensor& t : model->buffers()) after.push_back(t);
  EXPECT_TRUE(same_bytes(before, after));
  EXPECT_EQ(current_matmul(), Matmul::kTorch);
  EXPECT_THAT(choice.reason, HasSubstr("fp32 (torch)"));
  EXPECT_GE(choice.measured.size(), 2U);
}

TEST(PrecisionProbe, ABusyMachineDoesNotDecide) {
  const ProbeResult fp32{Precision::kFp32, Matmul::kTorch, 1.0, {1.0, 1.2, 1.0, 1.1}};
  const ProbeResult lucky{Precision::kBf16, Matmul::kTorch, 0.5, {40, 0.5, 0.6, 0.6}};
  const ProbeResult fast{Precision::kBf16, Matmul::kTorch, 0.5, {0.5, 0.6, 0.5, 0.6}};
  const ProbeResult near{Precision::kBf16, Matmul::kTorch, 0.95, {0.95, 1.1, 0.95, 1.0}};
  EXPECT_FALSE(wins_clearly(lucky, fp32));
  EXPECT_TRUE(wins_clearly(fast, fp32));
  EXPECT_FALSE(wins_clearly(near, fp32));
  const ProbeResult long_fp32{Precision::kFp32, Matmul::kTorch, 1, std::vector<double>(8, 1)};
  const ProbeResult once{Precision::kBf16, Matmul::kTorch, 0.5, {0.5, 0.5, 90, 0.5, 0.5, 0.5, 0.5, 0.5}};
  EXPECT_TRUE(wins_clearly(once, long_fp32));
}

TEST(PrecisionProbe, R36_AStopEndsTheProbe) {
  int64_t num_calls = 0;
  torch::nn::Sequential model = small_classifier();
  Task task = classification_task(model);
  task.forward = [&](const Batch& batch) mutable {
    ++num_calls;
    return model->forward(batch.inputs);
  };
  const Batch micro{at::rand({4, 4}), at::zeros({4}, at::kLong)};
  const auto stop = [&] {
    if (num_calls == 2) throw Error(ExitCode::kSigterm, "stopped");
  };
  EXPECT_THROW((void)choose_precision(task, micro, std::nullopt, std::nullopt, stop), Error);
  EXPECT_EQ(num_calls, 2);
  EXPECT_EQ(current_matmul(), Matmul::kTorch);
}

TEST(PrecisionProbe, WhatIsAskedForIsTaken) {
  const Task task = classification_task(small_classifier());
  const Batch micro{at::randn({8, 4}), no_targets(8)};
  const PrecisionChoice choice = choose_precision(task, micro, Precision::kBf16, std::nullopt);
  EXPECT_EQ(choice.precision, Precision::kBf16);
  EXPECT_EQ(choice.reason, "as asked");
  EXPECT_EQ(choose_precision(task, micro, Precision::kFp16, Matmul::kTorch).precision, Precision::kFp16);
}

TEST(Matmul, OneDnnComputesTheSameProducts) {
  if (!has_onednn()) GTEST_SKIP() << "this libtorch has no oneDNN";
  const at::Tensor x = at::randn({64, 784});
  const at::Tensor w = at::randn({256, 784});
  const at::Tensor b = at::randn({256});
  const auto products = [&] {
    return std::vector<at::Tensor>{at::linear(x, w, b), at::linear(x, w).t().mm(x), at::mm(x.t(), x),
                                   at::addmm(at::ones({64, 64}), x, x.t(), 0.5, 2),
                                   at::mm(x.slice(1, 0, 700, 2), w.slice(1, 0, 700, 2).t())};
  };
  use_matmul(Matmul::kTorch);
  const auto expected = products();
  use_matmul(Matmul::kOneDnn);
  const auto found = products();
  const auto again = products();
  use_matmul(Matmul::kTorch);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(at::allclose(found[i], expected[i], 1e-4, 1e-3)) << i;
    EXPECT_TRUE(same_bytes(found[i], again[i])) << i;
    EXPECT_EQ(found[i].sizes(), expected[i].sizes());
  }
  EXPECT_TRUE(same_bytes(products(), expected)) << "switching back gives libtorch's bits";
}

}  // namespace
}  // namespace gradstep::testing
