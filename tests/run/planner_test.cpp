// The decisions about a run, with numbers alone: its length, what is due when, what the engine and the plan
// get.
#include "run/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "gradstep/model/registry.h"
#include "support/thread_world.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

RunConfig with_length(std::optional<int64_t> epochs, std::optional<int64_t> max_steps) {
  RunConfig config;
  config.epochs = epochs;
  config.max_steps = max_steps;
  return config;
}

TEST(RunLength, TotalIsTheSmallerBound) {
  EXPECT_EQ(run_length(with_length({}, {}), 469).total_updates, 469);
  EXPECT_EQ(run_length(with_length(3, {}), 469).total_updates, 1407);
  EXPECT_EQ(run_length(with_length({}, 1000), 469).total_updates, 1000);
  EXPECT_EQ(run_length(with_length(3, 1000), 469).total_updates, 1000);
  EXPECT_EQ(run_length(with_length(2, 1000), 469).total_updates, 938);
  EXPECT_EQ(run_length(with_length(1'000'000'000, {}), 60'000).total_updates, 60'000'000'000'000);
}

// Pictures of 28 x 28: tensors of 203,530 parameters, namely gradients, and parameters and two moments with
// their copies for saving; one window of 128; half floats of one sample.
TEST(LeastMemory, CountsParametersWindowsAndASample) {
  const DatasetSpec spec{"fashion-mnist", {28, 28}, 10};
  const auto bytes = [&](const RunConfig& config) {
    return least_memory(config, Sampler(60'000, config.global_batch(1), 0), spec, 1);
  };
  const RunConfig defaults;
  EXPECT_EQ(bytes(defaults), 28 * 203'530 + 128 * 784 + 2 * (784 + 256));
  RunConfig config;
  config.opt = "sgd";
  EXPECT_EQ(bytes(defaults) - bytes(config), 8 * 203'530);
  config.momentum = 0;
  EXPECT_EQ(bytes(defaults) - bytes(config), 16 * 203'530);
  config = {.ema = 0.9};
  EXPECT_EQ(bytes(config) - bytes(defaults), 8 * 203'530);
  config = {.workers = 1024, .max_steps = 1, .batch_size = 1'000'000'000};
  EXPECT_EQ(bytes(config), 28.0 * 203'530 + 1024.0 * 60'000 * 784 + 2.0 * (784 + 256));
}

TEST(LeastMemory, MoreThanThereIsIsRefusedWithBothNumbers) {
  EXPECT_NO_THROW(check_memory(1000, 1000));
  try {
    check_memory(49.2e9, 20'500'000'000);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kOutOfMemory);
    EXPECT_THAT(error.what(),
                ::testing::AllOf(::testing::HasSubstr("49.2 GB"), ::testing::HasSubstr("20.5 GB"),
                                 ::testing::HasSubstr("--batch-size")));
  }
}

TEST(RunLength, EpochsBoundTheDataAndMaxStepsUpdates) {
  const RunLength epochs = run_length(with_length(2, {}), 5);
  EXPECT_FALSE(epochs.reached({.updates = 9, .epochs = 1.8}));
  EXPECT_TRUE(epochs.reached({.updates = 3, .epochs = 2}));  // skips or not
  const RunLength updates = run_length(with_length({}, 4), 5);
  EXPECT_FALSE(updates.reached({.updates = 3, .epochs = 200}));
  EXPECT_TRUE(updates.reached({.updates = 4, .epochs = 0.8}));
  const RunLength both = run_length(with_length(2, 4), 5);
  EXPECT_TRUE(both.reached({.updates = 4, .epochs = 0.8}));
  EXPECT_TRUE(both.reached({.updates = 0, .epochs = 2}));
  EXPECT_FALSE(both.reached({.updates = 3, .epochs = 1.8}));
}

TEST(RunLength, MaxTimeAloneHasNoOtherEnd) {
  RunConfig config;
  config.max_time = 60;
  const RunLength length = run_length(config, 5);
  EXPECT_EQ(length.total_updates, 0);
  EXPECT_FALSE(length.reached({.updates = 1'000'000, .epochs = 1e6, .seconds = 1e9}));
  config.epochs = 2;
  EXPECT_EQ(run_length(config, 5).total_updates, 10);
}

Elapsed after(int64_t updates, int64_t windows, int64_t windows_per_epoch, double seconds) {
  const auto whole = static_cast<double>(windows / windows_per_epoch);
  const auto rest = static_cast<double>(windows % windows_per_epoch);
  return {updates, whole + rest / static_cast<double>(windows_per_epoch), seconds};
}

// The numbers of the windows 1..n, each with an update, after which something is due.
std::vector<int64_t> due_at(const Interval& interval, int64_t windows_per_epoch, int64_t n,
                            double seconds_per_window = 1) {
  DueTimer timer(interval);
  std::vector<int64_t> at;
  for (int64_t i = 1; i <= n; ++i) {
    const Elapsed elapsed = after(i, i, windows_per_epoch, static_cast<double>(i) * seconds_per_window);
    if (!timer.due(elapsed)) continue;
    timer.mark_done(elapsed);
    at.push_back(i);
  }
  return at;
}

TEST(DueTimer, CountsUpdatesEpochsOrSeconds) {
  EXPECT_THAT(due_at({3, Interval::Unit::kUpdates}, 5, 10), ElementsAre(3, 6, 9));
  EXPECT_THAT(due_at({1, Interval::Unit::kEpochs}, 5, 12), ElementsAre(5, 10));
  EXPECT_THAT(due_at({2, Interval::Unit::kEpochs}, 5, 21), ElementsAre(10, 20));
  EXPECT_THAT(due_at({2.5, Interval::Unit::kSeconds}, 5, 8), ElementsAre(3, 5, 8));
}

TEST(DueTimer, NeverWithoutAnInterval) { EXPECT_TRUE(due_at({}, 5, 100).empty()); }

TEST(DueTimer, OnceForEveryPauseHoweverLong) {
  EXPECT_THAT(due_at({1, Interval::Unit::kSeconds}, 5, 3, 10), ElementsAre(1, 2, 3));
  EXPECT_THAT(due_at({1e-300, Interval::Unit::kSeconds}, 5, 3), ElementsAre(1, 2, 3));
}

TEST(DueTimer, ASkippedUpdateIsNotDueTwice) {
  DueTimer timer({2, Interval::Unit::kUpdates});
  EXPECT_TRUE(timer.due({.updates = 2}));
  timer.mark_done({.updates = 2});
  EXPECT_FALSE(timer.due({.updates = 2}));
  EXPECT_FALSE(timer.due({.updates = 3}));
  EXPECT_TRUE(timer.due({.updates = 4}));
}

TEST(DueTimer, WhatCouldNotBeDoneStaysDueAcrossAResume) {
  DueTimer timer({2, Interval::Unit::kUpdates});
  EXPECT_TRUE(timer.due({.updates = 2}));  // interrupted, so nothing is marked
  DueTimer resumed({2, Interval::Unit::kUpdates});
  resumed.restore(timer.done());
  EXPECT_TRUE(resumed.due({.updates = 2}));
  resumed.mark_done({.updates = 2});
  DueTimer again({2, Interval::Unit::kUpdates});
  again.restore(resumed.done());
  EXPECT_FALSE(again.due({.updates = 3}));
}

// Epochs of any length end on a whole number: no rounding makes one late.
TEST(DueTimer, NoEpochIsMissed) {
  for (int64_t per_epoch = 1; per_epoch < 50; ++per_epoch) {
    EXPECT_EQ(due_at({1, Interval::Unit::kEpochs}, per_epoch, 20 * per_epoch).size(), 20U) << per_epoch;
  }
}

TEST(LargestMicroBatch, IsNoLargerThanAWindowOrItsPart) {
  RunConfig config;
  config.batch_size = 32;
  EXPECT_EQ(largest_micro_batch(config, Sampler(1000, 128, 0), 1), 32);
  config.batch_size = 1'000'000'000;
  EXPECT_EQ(largest_micro_batch(config, Sampler(1000, 128, 0), 1), 128);
  EXPECT_EQ(largest_micro_batch(config, Sampler(1000, 128, 0), 3), 43);
  EXPECT_EQ(largest_micro_batch(config, Sampler(9, 128, 0), 1), 9);
}

TEST(EngineOptionsOf, EverySettingArrives) {
  RunConfig config;
  config.opt = "sgd";
  config.lr = 0.5;
  config.min_lr = 0.25;
  config.sched = "linear";
  config.warmup_steps = 7;
  config.weight_decay = 0.125;
  config.beta1 = 0.5;
  config.beta2 = 0.75;
  config.eps = 1e-3;
  config.momentum = 0.375;
  config.nesterov = config.decay_all = true;
  config.batch_size = 6;
  config.clip_grad = 2;
  config.seed = 99;
  const EngineOptions options = engine_options(config, 123);
  EXPECT_EQ(options.optimizer.kind, OptimizerKind::kSgd);
  EXPECT_EQ(options.optimizer.weight_decay, 0.125);
  EXPECT_EQ(options.optimizer.beta1, 0.5);
  EXPECT_EQ(options.optimizer.beta2, 0.75);
  EXPECT_EQ(options.optimizer.eps, 1e-3);
  EXPECT_EQ(options.optimizer.momentum, 0.375);
  EXPECT_TRUE(options.optimizer.nesterov);
  EXPECT_TRUE(options.optimizer.decay_all);
  EXPECT_EQ(options.schedule.shape, LrShape::kLinear);
  EXPECT_EQ(options.schedule.peak, 0.5);
  EXPECT_EQ(options.schedule.min, 0.25);
  EXPECT_EQ(options.schedule.warmup_steps, 7);
  EXPECT_EQ(options.schedule.total_steps, 123);
  EXPECT_EQ(options.micro_batch, 6);
  EXPECT_EQ(options.clip_grad, 2);
  EXPECT_EQ(options.seed, 99U);
  EXPECT_EQ(engine_options({}, 1).optimizer.kind, OptimizerKind::kAdamW);
}

RunPlan plan_of(const RunConfig& config, int64_t num_samples, World& world = solo()) {
  const Sampler sampler(num_samples, config.global_batch(world.size()), config.seed);
  const RunLength length = run_length(config, sampler.windows_per_epoch());
  Engine engine(make_task({}, {"mnist", {28, 28}, 10}), engine_options(config, length.total_updates), world);
  RunPlan plan;
  fill_plan(config, sampler, length, engine, world, plan);
  return plan;
}

TEST(FillPlan, TheReferenceJob) {
  RunConfig config;
  config.epochs = 3;
  const RunPlan plan = plan_of(config, 60'000);
  EXPECT_EQ(plan.train_samples, 60'000);
  EXPECT_EQ(plan.micro_batch, 32);
  EXPECT_EQ(plan.num_micro_batches, 4);
  EXPECT_EQ(plan.global_batch, 128);
  EXPECT_EQ(plan.windows_per_epoch, 469);
  EXPECT_EQ(plan.last_window_samples, 96);
  EXPECT_EQ(plan.total_updates, 1407);
  EXPECT_EQ(plan.ends, "after 3 epochs");
  EXPECT_EQ(plan.schedule, "cosine, 100 warm-up updates, peak 0.001, min 0");
  EXPECT_EQ(plan.num_parameters, 784 * 256 + 256 + 256 * 10 + 10);
  EXPECT_EQ(plan.decay_tensors, 2);
  EXPECT_EQ(plan.decay_parameters, 784 * 256 + 2560);
  EXPECT_EQ(plan.no_decay_tensors, 2);
  EXPECT_EQ(plan.no_decay_parameters, 266);
  // Parameters, two moments of the same size, and a step number for each of four tensors.
  EXPECT_EQ(plan.checkpoint_bytes, 3 * 4 * plan.num_parameters + 4 * 4);
  EXPECT_GT(plan.memory_bytes, plan.checkpoint_bytes);
  EXPECT_GT(plan.memory_free_bytes, 0);
  ASSERT_EQ(plan.lr_points.size(), 5U);
  EXPECT_THAT(plan.lr_points[0], Pair(1, 1e-3 / 100));
  EXPECT_THAT(plan.lr_points[1], Pair(100, 1e-3));
  EXPECT_THAT(plan.lr_points[4], Pair(1407, 0.0));
}

TEST(FillPlan, LearningRatePointsRiseAndStayInside) {
  for (const int64_t total : {1, 2, 3, 5, 100}) {
    for (const int64_t warmup : {int64_t{0}, int64_t{1}, total}) {
      if (warmup > total) continue;
      RunConfig config = with_length({}, total);
      config.warmup_steps = warmup;
      int64_t previous = 0;
      for (const auto& [update, lr] : plan_of(config, 1000).lr_points) {
        EXPECT_GT(update, previous);
        EXPECT_LE(update, total);
        EXPECT_GE(lr, 0);
        previous = update;
      }
      EXPECT_EQ(previous, total);
    }
  }
}

TEST(FillPlan, AWindowLargerThanTheDataIsOneWindow) {
  RunConfig config = with_length(1, {});
  config.global_batch_size = 5000;
  config.warmup_steps = 0;
  const RunPlan plan = plan_of(config, 100);
  EXPECT_EQ(plan.windows_per_epoch, 1);
  EXPECT_EQ(plan.last_window_samples, 100);
  EXPECT_EQ(plan.num_micro_batches, 4);
  EXPECT_EQ(plan.ends, "after 1 epoch");
}

TEST(FillPlan, RanksShareAWindow) {
  run_ranks(2, [](World& world) {
    RunConfig config = with_length(1, {});
    config.warmup_steps = 0;
    const RunPlan plan = plan_of(config, 1000, world);
    EXPECT_EQ(plan.world_size, 2);
    EXPECT_EQ(plan.global_batch, 256);
    EXPECT_EQ(plan.num_micro_batches, 4);
  });
}

TEST(FillPlan, WordsForEveryKindOfEnd) {
  EXPECT_EQ(plan_of(with_length({}, 500), 1000).ends, "after 500 updates");
  EXPECT_EQ(plan_of(with_length(100, 500), 1000).ends,
            "after 100 epochs or 500 updates, whichever comes first");
  RunConfig config = with_length({}, 500);
  config.opt = "sgd";
  config.nesterov = true;
  config.clip_grad = 1.5;
  config.sched = "constant";
  EXPECT_EQ(plan_of(config, 1000).optimizer, "sgd, momentum 0.9, nesterov, gradients clipped to norm 1.5");
  EXPECT_EQ(plan_of(config, 1000).schedule, "constant, 100 warm-up updates, peak 0.001");
}

TEST(FillPlan, CountsGroups) {
  RunConfig config = with_length({}, 500);
  config.param_groups = "fc2.bias:frozen; fc1.*:lr=0.1,wd=0.01";
  const RunPlan plan = plan_of(config, 1000);
  EXPECT_EQ(plan.num_parameters, 784 * 256 + 256 + 256 * 10 + 10);
  EXPECT_THAT(plan.groups, ::testing::ElementsAre(
                               "fc2.bias: frozen, 1 tensor (10 parameters)",
                               "fc1.*: learning rate x 0.1, decay 0.01, 2 tensors (200,960 parameters)"));
  // What no group decays in its own way.
  EXPECT_EQ(plan.decay_tensors, 1);
  EXPECT_EQ(plan.decay_parameters, 2560);
  EXPECT_EQ(plan.no_decay_tensors, 0);
  EXPECT_EQ(plan.checkpoint_bytes, 3 * 4 * plan.num_parameters - 2 * 4 * 10 + 3 * 4);
}

}  // namespace
}  // namespace gradstep::testing
