// An optimizer that a user brings: trained, and handed to the engine by a factory.
#include <gtest/gtest.h>

#include "gradstep/base/error.h"
#include "support/adagrad.h"
#include "support/lin.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

EngineOptions with_adagrad(const std::string& groups = "") {
  return {.optimizer = {.groups = parse_param_groups(groups)},
          .make_optimizer = make_adagrad,
          .schedule = {.shape = LrShape::kConstant, .peak = 0.5}};
}

TEST(OwnOptimizer, FollowsItsFormula) {
  Lin lin;
  Engine engine(lin_task(lin), with_adagrad(), solo());
  float w = 0, sum = 0;
  for (const float g : {3.0F, -1.0F, 2.0F}) {
    engine.step(column({g}), no_targets(1));
    sum += g * g;
    w -= 0.5F * g / (std::sqrt(sum) + 1e-10F);
    EXPECT_FLOAT_EQ(lin->w.item<float>(), w);
  }
  ASSERT_EQ(engine.optimizer().state().size(), 1U);
  EXPECT_EQ(engine.optimizer().state()[0].first, "w.sum");
  EXPECT_EQ(engine.optimizer().state_bytes(), 4);
}

TEST(OwnOptimizer, SkipsWhatIsNotFinite) {
  Lin lin;
  Engine engine(lin_task(lin), with_adagrad(), solo());
  engine.step(column({3}), no_targets(1));
  const std::vector<at::Tensor> before = everything(engine);
  EXPECT_EQ(engine.step(column({std::numeric_limits<float>::infinity()}), no_targets(1)).update, 1);
  EXPECT_TRUE(same_bytes(everything(engine), before));
}

TEST(OwnOptimizer, IsGivenTheGroups) {
  torch::nn::Sequential model = small_classifier();
  Engine engine(classification_task(model), with_adagrad("0.*:lr=0.25; 2.bias:frozen"), solo());
  ASSERT_EQ(engine.optimizer().trained().size(), 3U);
  EXPECT_EQ(engine.optimizer().trained()[0].lr_factor, 0.25);
  EXPECT_EQ(engine.optimizer().trained()[2].name, "2.weight");
}

TEST(OwnOptimizer, AFactoryThatMakesNothingIsRefused) {
  EngineOptions options = with_adagrad();
  options.make_optimizer = [](std::vector<TrainedParameter>) { return nullptr; };
  EXPECT_THROW(Engine(lin_task(Lin()), options, solo()), ConfigError);
}

}  // namespace
}  // namespace gradstep::testing
