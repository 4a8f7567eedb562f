// EmaWeights against the closed recursion, and the exchange with the parameters.
#include "step/ema.h"

#include <gtest/gtest.h>

#include "support/lin.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

NamedTensors two_parameters() {
  torch::manual_seed(1);
  return {{"a", torch::randn({5, 3}).requires_grad_()},
          {"b", torch::randn({3, 7}).t().requires_grad_()},  // not contiguous
          {"c", torch::randn({}).requires_grad_()}};
}

void change(const NamedTensors& parameters) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : parameters) parameter.add_(at::randn_like(parameter));
}

TEST(EmaWeights, IsTheRecursionBitForBit) {
  const NamedTensors parameters = two_parameters();
  EmaWeights ema(parameters, 0.9);
  std::vector<at::Tensor> expected = copies(parameters);
  for (int k = 0; k < 50; ++k) {
    change(parameters);
    ema.update();
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = at::lerp(expected[i], parameters[i].second.detach(), 1 - 0.9);
  }
  EXPECT_TRUE(same_bytes(copies(ema.tensors()), expected));
  ema.reset();
  EXPECT_TRUE(same_bytes(copies(ema.tensors()), copies(parameters)));
}

TEST(EmaWeights, TensorsCarryTheParametersNames) {
  const NamedTensors parameters = two_parameters();
  EmaWeights ema(parameters, 0.5);
  const NamedTensors tensors = ema.tensors();
  ASSERT_EQ(tensors.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(tensors[i].first, parameters[i].first);
    EXPECT_FALSE(tensors[i].second.requires_grad());
  }
}

TEST(EmaWeights, SwapExchangesBitsAndGivesThemBack) {
  const NamedTensors parameters = two_parameters();
  EmaWeights ema(parameters, 0.9);
  change(parameters);
  {
    const at::NoGradGuard no_grad;
    parameters[0].second[0][0] = -0.0F;
    parameters[0].second[0][1] = std::numeric_limits<float>::quiet_NaN();
  }
  const std::vector<at::Tensor> plain = copies(parameters);
  const std::vector<at::Tensor> averaged = copies(ema.tensors());
  ema.swap();
  EXPECT_TRUE(same_bytes(copies(parameters), averaged));
  EXPECT_TRUE(same_bytes(copies(ema.tensors()), plain));
  ema.swap();
  EXPECT_TRUE(same_bytes(copies(parameters), plain));
  EXPECT_TRUE(same_bytes(copies(ema.tensors()), averaged));
}

TEST(EmaWeights, OffIsNothing) {
  const NamedTensors parameters = two_parameters();
  EmaWeights ema(parameters, 0);
  const std::vector<at::Tensor> plain = copies(parameters);
  ema.update();
  ema.reset();
  ema.swap();
  EXPECT_FALSE(ema.enabled());
  EXPECT_TRUE(ema.tensors().empty());
  EXPECT_TRUE(same_bytes(copies(parameters), plain));
}

TEST(EmaWeights, TheEngineAveragesAppliedUpdatesFromTheFirstOn) {
  Lin lin;
  EngineOptions options = plain_sgd(1);
  options.ema_decay = 0.5;
  Engine engine(lin_task(lin), options, solo());
  const auto average = [&engine] { return engine.averages()[0].second.item<float>(); };
  engine.step(column({-2}), no_targets(1));  // w = 2, and so is the average, as AveragedModel begins
  EXPECT_EQ(average(), 2.0F);
  engine.step(column({-2}), no_targets(1));  // w = 4
  EXPECT_EQ(average(), 3.0F);
  engine.step(column({std::numeric_limits<float>::infinity()}), no_targets(1));  // skipped
  EXPECT_EQ(average(), 3.0F);
  engine.step(column({-1}), no_targets(1));  // w = 5
  EXPECT_EQ(average(), 4.0F);
}

}  // namespace

TEST(EmaWeights, AGuardLendsTheAveragesToTheParametersAndAnExceptionGivesThemBack) {
  Lin lin;
  EngineOptions options = plain_sgd(1);
  options.ema_decay = 0.5;
  Engine engine(lin_task(lin), options, solo());
  const at::Tensor parameter = engine.optimizer().parameters()[0].second;
  engine.step(column({-2}), no_targets(1));
  engine.step(column({-2}), no_targets(1));  // w = 4, average 3
  const auto evaluate = [&] {
    const AveragesGuard guard(engine);
    EXPECT_EQ(parameter.item<float>(), 3.0F);
    EXPECT_EQ(engine.averages()[0].second.item<float>(), 4.0F);
    throw std::runtime_error("evaluation failed");
  };
  EXPECT_THROW(evaluate(), std::runtime_error);
  EXPECT_EQ(parameter.item<float>(), 4.0F);
  EXPECT_EQ(engine.averages()[0].second.item<float>(), 3.0F);
}

}  // namespace gradstep::testing
