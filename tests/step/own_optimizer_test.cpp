// An optimizer that a user brings: trained, and handed to the engine by a factory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradstep/base/error.h"
#include "support/adagrad.h"
#include "support/lin.h"
#include "support/message_of.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

// Remembers what a test wants, and learns nothing.
class Remembering final : public Optimizer {
 public:
  using State = std::function<NamedTensors(int64_t num_steps)>;
  Remembering(std::vector<TrainedParameter> parameters, State state)
      : Optimizer(std::move(parameters)), state_(std::move(state)) {}
  void step(double /*lr*/, const at::Tensor& /*found_inf*/) override { ++num_steps_; }
  [[nodiscard]] NamedTensors state() const override { return state_(num_steps_); }

 private:
  State state_;
  int64_t num_steps_ = 0;
};

Engine engine_with(const Remembering::State& state) {
  EngineOptions options = plain_sgd(1);
  options.make_optimizer = [state](std::vector<TrainedParameter> parameters) {
    return std::make_unique<Remembering>(std::move(parameters), state);
  };
  return {lin_task(Lin()), options, solo()};
}

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

TEST(OwnOptimizer, AStateThatNoCheckpointCanHoldOrRestoreIsRefused) {
  const auto refusal = [](const NamedTensors& state) {
    return message_of<ConfigError>([&] { engine_with([state](int64_t) { return state; }); });
  };
  const at::Tensor one = at::ones({1});
  EXPECT_THAT(refusal({{"s", one.expand({3})}}),
              HasSubstr("the optimizer's state s has elements that share"));
  EXPECT_THAT(refusal({{"\xff\n", one}}), HasSubstr("has a name that is not UTF-8"));
  EXPECT_THAT(refusal({{"s", one}, {"s", one}}), HasSubstr("state s has the name of another one"));
  EXPECT_THAT(refusal({{"s", at::Tensor()}}), HasSubstr("state s is undefined"));
  EXPECT_THAT(refusal({{"s", one.to(at::kComplexDouble)}}), HasSubstr("state s is ComplexDouble"));
}

TEST(OwnOptimizer, AStateThatBeginsWithTheFirstStepIsRefusedAfterIt) {
  Engine engine =
      engine_with([](int64_t n) { return n == 0 ? NamedTensors{} : NamedTensors{{"s", at::ones({3})}}; });
  EXPECT_THAT(message_of<ConfigError>([&] { engine.step(column({1}), no_targets(1)); }),
              HasSubstr("tensor 1 of the optimizer's state is s Float (3), and was missing at the start"));
}

TEST(OwnOptimizer, AStateThatChangesLaterIsRefusedWhenItIsAsked) {
  const auto refusal = [](const NamedTensors& later) {
    Engine engine = engine_with([later](int64_t n) {
      return n < 2 ? NamedTensors{{"r", at::ones({})}, {"s", at::ones({3})}} : later;
    });
    engine.step(column({1}), no_targets(1));
    (void)engine.state();
    engine.step(column({1}), no_targets(1));
    return message_of<ConfigError>([&] { (void)engine.state(); });
  };
  const at::Tensor r = at::ones({});
  EXPECT_THAT(refusal({{"r", r}, {"s", at::ones({27})}}),
              HasSubstr("state is s Float (27), and was s Float (3) at the start"));
  EXPECT_THAT(refusal({{"r", r}, {"s", at::ones({3}, at::kDouble)}}), HasSubstr("s Double (3), and was"));
  EXPECT_THAT(refusal({{"r", r}, {"t", at::ones({3})}}), HasSubstr("is t Float (3), and was s"));
  EXPECT_THAT(refusal({{"r", r}}), HasSubstr("tensor 2 of the optimizer's state is missing, and was s"));
}

}  // namespace
}  // namespace gradstep::testing
