// Faults that were reported on the engine of version 0.1, by number: a stop within a window, the user's
// generators, parameters that come after the engine, options that make no sense.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "gradstep/checkpoint/model_file.h"
#include "gradstep/step/engine.h"
#include "support/message_of.h"
#include "support/thread_world.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// With dropout, and batch norm, whose statistics each forward moves.
torch::nn::Sequential noisy_model() {
  torch::manual_seed(0);
  return torch::nn::Sequential(torch::nn::Linear(3, 8), torch::nn::BatchNorm1d(8), torch::nn::Dropout(0.5),
                               torch::nn::Linear(8, 4));
}

EngineOptions options() {
  EngineOptions options;
  options.micro_batch = 2;
  options.schedule = {.shape = LrShape::kConstant, .peak = 0.1};
  options.ema_decay = 0.5;
  options.seed = 5;
  return options;
}

Window window(int64_t number) {
  const at::Tensor inputs = at::arange(24, at::kFloat).reshape({8, 3}).sin() + static_cast<double>(number);
  Window window;
  window.batch = {inputs, at::arange(8).remainder(4)};
  window.total_samples = 8;
  return window;
}

TEST(EngineReports, R36_AWindowGivenUpLeavesNothingAndItsRepeatIsBitEqual) {
  const torch::nn::Sequential unbroken = noisy_model(), broken = noisy_model();
  Engine expected(classification_task(unbroken), options(), solo());
  Engine engine(classification_task(broken), options(), solo());
  for (int64_t number = 0; number < 3; ++number) {
    expected.step(window(number));
    for (const int64_t after : {0, 1, 3}) {
      const std::vector<at::Tensor> before = copies(model_tensors(*broken));
      const EngineState state = engine.state();
      std::vector<int64_t> asked;
      const StepReport report = engine.step(window(number), [&](int64_t done, int64_t total) {
        EXPECT_EQ(total, 4);
        asked.push_back(done);
        return done == after;
      });
      EXPECT_EQ(report.outcome, StepOutcome::kGivenUp);
      EXPECT_TRUE(report.skipped());
      EXPECT_EQ(asked.back(), after);
      EXPECT_EQ(asked.size(), static_cast<size_t>(after + 1));
      EXPECT_TRUE(same_bytes(copies(model_tensors(*broken)), before));
      EXPECT_EQ(engine.state().counters.windows, state.counters.windows);
      EXPECT_EQ(engine.state().counters.skipped_total, state.counters.skipped_total);
      EXPECT_TRUE(engine.is_whole());
      for (const at::Tensor& parameter : broken->parameters()) EXPECT_FALSE(parameter.grad().defined());
    }
    EXPECT_EQ(engine.step(window(number), [](int64_t, int64_t) { return false; }).outcome,
              StepOutcome::kApplied);
  }
  EXPECT_TRUE(same_bytes(everything(engine), everything(expected)));
}

TEST(EngineReports, R36_OneRankGivesUpForAll) {
  std::vector<StepOutcome> outcomes(2);
  std::vector<int64_t> windows(2);
  run_ranks(2, [&](World& world) {
    torch::nn::Sequential model{torch::nn::Linear(3, 4)};
    Engine engine(classification_task(model), options(), world);
    Window part = window(0);
    const Range share = array_split(8, 2, world.rank());
    part.batch = part.batch.narrow(share.begin, share.size());
    const auto report =
        engine.step(part, [&](int64_t done, int64_t) { return world.rank() == 1 && done == 1; });
    outcomes[static_cast<size_t>(world.rank())] = report.outcome;
    windows[static_cast<size_t>(world.rank())] = engine.step(part).window;
  });
  EXPECT_THAT(outcomes, ::testing::Each(StepOutcome::kGivenUp));
  EXPECT_THAT(windows, ::testing::Each(1));
}

TEST(EngineReports, R44_TheUsersGeneratorIsAsItWas) {
  torch::nn::Sequential model = noisy_model();
  Engine engine(classification_task(model), options(), solo());
  torch::manual_seed(11);
  (void)at::randn({1});  // a normal number more is kept for the next call
  const at::Tensor expected = torch::cat({at::randn({3}), at::rand({5})});
  torch::manual_seed(11);
  (void)at::randn({1});
  engine.step(window(0));
  (void)engine.examine(window(0), 8.0);
  EXPECT_THROW(
      engine.step(Window{.batch = {at::zeros({8, 7}), at::zeros({8}, at::kLong)}, .total_samples = 8}),
      std::exception);
  EXPECT_TRUE(same_bytes(torch::cat({at::randn({3}), at::rand({5})}), expected));
}

// And what the user draws has no part in the window.
TEST(EngineReports, R44_TheNoiseOfAWindowFollowsFromTheSeedAlone) {
  std::vector<at::Tensor> ends;
  for (const uint64_t seed : {1, 2}) {
    torch::nn::Sequential model = noisy_model();
    Engine engine(classification_task(model), options(), solo());
    torch::manual_seed(seed);
    for (int64_t number = 0; number < 3; ++number) engine.step(window(number));
    ends.push_back(model->parameters()[0].detach().clone());
  }
  EXPECT_TRUE(same_bytes(ends[0], ends[1]));
}

TEST(EngineReports, R45_AParameterThatComesLaterIsNamed) {
  torch::nn::Sequential model = noisy_model();
  EngineOptions with_frozen = options();
  with_frozen.optimizer.groups = parse_param_groups("0.*:frozen");
  Engine engine(classification_task(model), with_frozen, solo());
  EXPECT_EQ(engine.step(window(0)).outcome, StepOutcome::kApplied);
  model->parameters()[0].requires_grad_(true);
  EXPECT_THAT(message_of<ConfigError>([&] { engine.step(window(1)); }),
              AllOf(HasSubstr("parameter 0.weight was unfrozen"), HasSubstr("make the engine anew")));
  model->parameters()[0].requires_grad_(false);
  EXPECT_EQ(engine.step(window(1)).outcome, StepOutcome::kApplied);
  model->push_back(torch::nn::Linear(4, 4));
  EXPECT_THAT(message_of<ConfigError>([&] { engine.step(window(2)); }),
              AllOf(HasSubstr("parameter 4.weight was registered"), HasSubstr("make the engine anew")));
  EXPECT_EQ(engine.counters().windows, 2);
  EXPECT_TRUE(engine.is_whole());
}

TEST(EngineReports, R46_AnEngineMovesAndIsNotCopied) {
  static_assert(!std::is_copy_constructible_v<Engine> && !std::is_copy_assignable_v<Engine>);
  static_assert(std::is_move_constructible_v<Engine> && std::is_move_assignable_v<Engine>);
  torch::nn::Sequential model = noisy_model();
  Engine first(classification_task(model), options(), solo());
  first.step(window(0));
  Engine second = std::move(first);
  EXPECT_EQ(second.step(window(1)).window, 2);
}

TEST(EngineReports, R31_OptionsThatMakeNoSenseAreRefused) {
  const auto refusal = [](auto change) {
    EngineOptions wrong = options();
    change(wrong);
    torch::nn::Sequential model = noisy_model();
    return message_of<ConfigError>([&] { Engine engine(classification_task(model), wrong, solo()); });
  };
  EXPECT_THAT(refusal([](EngineOptions& o) { o.optimizer.eps = 1e-46; }), HasSubstr("eps"));
  EXPECT_THAT(refusal([](EngineOptions& o) { o.optimizer.beta1 = 2; }), HasSubstr("beta1"));
  EXPECT_THAT(refusal([](EngineOptions& o) { o.optimizer.beta2 = 1; }), HasSubstr("beta2"));
  EXPECT_THAT(refusal([](EngineOptions& o) { o.optimizer.weight_decay = -1; }), HasSubstr("weight decay"));
  EXPECT_THAT(refusal([](EngineOptions& o) { o.ema_decay = 1.5; }), HasSubstr("ema_decay"));
  EXPECT_THAT(refusal([](EngineOptions& o) { o.clip_grad = -1; }), HasSubstr("clip_grad"));
  EXPECT_THAT(refusal([](EngineOptions& o) { o.clip_grad = std::nan(""); }), HasSubstr("clip_grad"));
  EXPECT_THAT(refusal([](EngineOptions& o) { o.spikes = {.z_score = 3, .window = 0}; }),
              HasSubstr("spikes.window"));
  EXPECT_THAT(refusal([](EngineOptions& o) { o.micro_batch = 0; }), HasSubstr("micro-batch"));
  EXPECT_THAT(refusal([](EngineOptions& o) { o.scaler.init_scale = 0; }), HasSubstr("init_scale"));
  EXPECT_THAT(refusal([](EngineOptions& o) { o.seed = uint64_t{1} << 32; }), HasSubstr("seed"));
  EXPECT_THAT(refusal([](EngineOptions& o) { o.schedule.peak = -0.1; }), HasSubstr("schedule"));
}

}  // namespace
}  // namespace gradstep::testing
