// The decisions about a run, with numbers alone: its length, what is due when, what the engine and the plan
// get.
#include "run/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "support/adagrad.h"
#include "support/mlp.h"
#include "support/thread_world.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

JobLength with_length(std::optional<int64_t> epochs, std::optional<int64_t> max_updates) {
  return {.epochs = epochs, .max_updates = max_updates};
}

TEST(RunLength, TotalIsTheSmallerBound) {
  EXPECT_EQ(run_length(with_length({}, {}), 469).total_updates, 469);
  EXPECT_EQ(run_length(with_length(3, {}), 469).total_updates, 1407);
  EXPECT_EQ(run_length(with_length({}, 1000), 469).total_updates, 1000);
  EXPECT_EQ(run_length(with_length(3, 1000), 469).total_updates, 1000);
  EXPECT_EQ(run_length(with_length(2, 1000), 469).total_updates, 938);
  EXPECT_EQ(run_length(with_length(1'000'000'000, {}), 60'000).total_updates, 60'000'000'000'000);
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
  JobLength asked{.max_seconds = 60};
  const RunLength length = run_length(asked, 5);
  EXPECT_EQ(length.total_updates, 0);
  EXPECT_FALSE(length.reached({.updates = 1'000'000, .epochs = 1e6, .seconds = 1e9}));
  asked.epochs = 2;
  EXPECT_EQ(run_length(asked, 5).total_updates, 10);
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
  Task task;
  EXPECT_EQ(largest_micro_batch(task, 32, Sampler(1000, 128, 0), 1), 32);
  constexpr int64_t kHuge = 1'000'000'000;
  EXPECT_EQ(largest_micro_batch(task, kHuge, Sampler(1000, 128, 0), 1), 128);
  EXPECT_EQ(largest_micro_batch(task, kHuge, Sampler(1000, 128, 0), 3), 43);
  EXPECT_EQ(largest_micro_batch(task, kHuge, Sampler(9, 128, 0), 1), 9);
  task.divisible = false;  // the window as a whole
  EXPECT_EQ(largest_micro_batch(task, 32, Sampler(1000, 128, 0), 1), 128);
}

// The reference job: micro-batches of 32, updates of 128 a rank.
Job reference_job(JobLength length, int64_t warmup_steps = 100) {
  Job job;
  job.engine.schedule.peak = 1e-3;
  job.engine.schedule.warmup_steps = warmup_steps;
  job.engine.optimizer.weight_decay = 1e-4;
  job.length = length;
  return job;
}

RunPlan plan_of(const Job& job, int64_t num_samples, World& world = solo()) {
  const int64_t global_batch = job.global_batch > 0 ? job.global_batch : 128 * world.size();
  const Sampler sampler(num_samples, global_batch, job.engine.seed);
  const RunLength length = run_length(job.length, sampler.windows_per_epoch());
  EngineOptions options = job.engine;
  options.schedule.total_steps = length.total_updates;
  const Engine engine(make_task({}, {"mnist", {28, 28}, 10}), options, world);
  RunPlan plan;
  fill_plan(job, sampler, length, engine, world, plan);
  return plan;
}

TEST(FillPlan, TheReferenceJob) {
  const RunPlan plan = plan_of(reference_job({.epochs = 3}), 60'000);
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
      int64_t previous = 0;
      for (const auto& [update, lr] :
           plan_of(reference_job({.max_updates = total}, warmup), 1000).lr_points) {
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
  Job job = reference_job({.epochs = 1}, 0);
  job.global_batch = 5000;
  const RunPlan plan = plan_of(job, 100);
  EXPECT_EQ(plan.windows_per_epoch, 1);
  EXPECT_EQ(plan.last_window_samples, 100);
  EXPECT_EQ(plan.num_micro_batches, 4);
  EXPECT_EQ(plan.ends, "after 1 epoch");
}

TEST(FillPlan, RanksShareAWindow) {
  run_ranks(2, [](World& world) {
    const RunPlan plan = plan_of(reference_job({.epochs = 1}, 0), 1000, world);
    EXPECT_EQ(plan.world_size, 2);
    EXPECT_EQ(plan.global_batch, 256);
    EXPECT_EQ(plan.num_micro_batches, 4);
  });
}

TEST(FillPlan, WordsForEveryKindOfEnd) {
  EXPECT_EQ(plan_of(reference_job({.max_updates = 500}), 1000).ends, "after 500 updates");
  EXPECT_EQ(plan_of(reference_job({.epochs = 100, .max_updates = 500}), 1000).ends,
            "after 100 epochs or 500 updates, whichever comes first");
  Job job = reference_job({.max_updates = 500});
  job.engine.optimizer.kind = OptimizerKind::kSgd;
  job.engine.optimizer.momentum = 0.9;
  job.engine.optimizer.nesterov = true;
  job.engine.clip_grad = 1.5;
  job.engine.schedule.shape = LrShape::kConstant;
  EXPECT_EQ(plan_of(job, 1000).optimizer, "sgd, momentum 0.9, nesterov, gradients clipped to norm 1.5");
  EXPECT_EQ(plan_of(job, 1000).schedule, "constant, 100 warm-up updates, peak 0.001");
}

TEST(FillPlan, WordsForWhatTheProgramBrings) {
  Job job = reference_job({.max_updates = 500});
  job.engine.schedule.function = [](int64_t k) { return 1.0 / static_cast<double>(k); };
  job.engine.make_optimizer = make_adagrad;
  const RunPlan plan = plan_of(job, 1000);
  EXPECT_EQ(plan.schedule, "a function of the program");
  EXPECT_EQ(plan.optimizer, "one of the program");
  EXPECT_THAT(plan.lr_points.back(), Pair(500, 1.0 / 500));
}

TEST(FillPlan, CountsGroups) {
  Job job = reference_job({.max_updates = 500});
  job.engine.optimizer.groups = parse_param_groups("fc2.bias:frozen; fc1.*:lr=0.1,wd=0.01");
  const RunPlan plan = plan_of(job, 1000);
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
