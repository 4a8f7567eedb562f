// Going on within one process: order of samples (C3, C4), ranks (C10), patience and averages, refusals by
// name (C12).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/memory_limit.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "support/message_of.h"
#include "support/saves.h"
#include "support/small_run.h"
#include "support/thread_world.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

// Goes on with the run in `run.out`; rows of this start are in run.sink.
RunEnd go_on(SmallRun& run) {
  run.sink.windows.clear();
  run.sink.evals.clear();
  run.sink.ends.clear();
  const std::optional<FoundCheckpoint> found = newest_checkpoint(run.out.path());
  EXPECT_TRUE(found.has_value());
  Trainer trainer(run.job(), solo());
  trainer.resume(*found);
  return trainer.run(run.sink, run.stop, posix_file_system(), run.out.path());
}

TrainState newest(const SmallRun& run) { return newest_checkpoint(run.out.path())->state; }

// With a learning rate of 0 the loss of a window of one sample tells which sample it was.
class Order : public ::testing::TestWithParam<int64_t> {};

TEST_P(Order, C3_C4_StoppedAfterThirteenOfThirtyWindows) {
  const auto prepare = [](SmallRun& run) {
    run.config.epochs = 3;
    run.config.batch_size = run.config.grad_accum_steps = 1;
    run.config.lr = 0;
    run.config.workers = GetParam();
  };
  SmallRun whole(10);
  prepare(whole);
  whole.run();
  std::vector<double> expected = whole.losses();
  ASSERT_EQ(expected.size(), 30U);
  ASSERT_EQ(std::set<double>(expected.begin(), expected.begin() + 10).size(), 10U);

  SmallRun run(10);
  prepare(run);
  run.config.stop_after = 13;
  run.run();
  std::vector<double> seen = run.losses();
  EXPECT_EQ(seen.size(), 13U);
  run.config.stop_after.reset();
  go_on(run);
  EXPECT_EQ(run.sink.windows.front().step.window, 14);
  for (const double loss : run.losses()) seen.push_back(loss);
  EXPECT_EQ(seen, expected);
}

INSTANTIATE_TEST_SUITE_P(Workers, Order, ::testing::Values(0, 2));

// One update on one rank, the others on two: the same windows, so the same losses.
TEST(Ranks, C10_ARunGoesOnWithMoreRanks) {
  const auto prepare = [](SmallRun& run) {
    run.config.epochs = 2;
    run.config.global_batch_size = 4;
    run.config.lr = 0;
  };
  SmallRun whole(16);
  prepare(whole);
  whole.run();
  SmallRun run(16);
  prepare(run);
  run.config.stop_after = 1;
  run.run();
  std::vector<double> seen = run.losses();
  run.config.stop_after.reset();
  const std::optional<FoundCheckpoint> found = newest_checkpoint(run.out.path());
  ASSERT_TRUE(found.has_value());
  std::vector<RecordingSink> sinks(2);
  run_ranks(2, [&](World& world) {
    try {
      Trainer trainer(run.job(world), world);
      trainer.resume(*found);
      RecordingSink& sink = sinks[static_cast<size_t>(world.rank())];
      EXPECT_EQ(trainer.run(sink, run.stop, posix_file_system(), run.out.path()).update, 8);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  });
  EXPECT_TRUE(sinks[1].windows.empty());
  for (const WindowRow& row : sinks[0].windows) {
    EXPECT_EQ(row.step.samples, 4);
    seen.push_back(row.step.loss);
  }
  ASSERT_EQ(seen.size(), whole.losses().size());
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_NEAR(seen[i], whole.losses()[i], 1e-6) << i;
  EXPECT_EQ(newest(run).world_size, 2);
}

TEST(Patience, EarlyStoppingCountsAcrossStarts) {
  const auto prepare = [](SmallRun& run) {
    run.config.epochs = 50;
    run.config.eval_interval = {1, Interval::Unit::kUpdates};
    run.config.early_stop_patience = 7;
    run.config.ema = 0.5;
    run.config.best_metric = "ema_val_acc";
  };
  SmallRun whole;
  prepare(whole);
  const RunEnd end = whole.run();
  ASSERT_EQ(end.reason, EndReason::kEarlyStop);
  ASSERT_GT(end.update, 7);
  SmallRun run;
  prepare(run);
  run.config.stop_after = 3;
  RunEnd last = run.run();
  while (last.reason == EndReason::kStopAfter) last = go_on(run);
  EXPECT_EQ(last.reason, EndReason::kEarlyStop);
  EXPECT_EQ(last.update, end.update);
  EXPECT_EQ(last.best_eval->update, end.best_eval->update);
  EXPECT_EQ(first_difference(newest(run), newest(whole)), "");
  const RunEnd again = go_on(run);
  EXPECT_EQ(again.reason, EndReason::kEarlyStop);
  EXPECT_TRUE(run.sink.windows.empty());
}

TEST(Averages, TurnedOnInTheMiddleTheyBeginAsTheParameters) {
  SmallRun run;
  run.config.epochs = 2;
  run.config.stop_after = 2;
  run.run();
  const TrainState before = newest(run);
  EXPECT_TRUE(before.ema.empty());
  run.config.ema = 0.9;
  run.config.stop_after = 1;
  go_on(run);
  const TrainState after = newest(run);
  ASSERT_EQ(after.ema.size(), 4U);
  const at::Tensor expected = before.model[0].second.lerp(after.model[0].second, 1 - 0.9);
  EXPECT_TRUE(same_bytes(after.ema[0].second, expected));
}

// The first of a row of skips is looked into, and no other, whether or not a start lies between.
TEST(Skips, ARowOfThemGoesOnInTheNextStart) {
  const auto prepare = [](SmallRun& run) {
    run.config.epochs = 3;
    run.config.opt = "sgd";
    run.config.sched = "constant";
    run.config.lr = 1e38;  // nothing is finite after the first update
    run.config.on_spike = OnTrouble::kSkip;
  };
  SmallRun whole;
  prepare(whole);
  whole.run();
  SmallRun run;
  prepare(run);
  StopToken stop;
  run.sink.on_window = [&](const WindowRow& row) {
    if (row.step.window == 4) stop.request(ExitCode::kSigterm);
  };
  Trainer(run.job(), solo()).run(run.sink, stop, posix_file_system(), run.out.path());
  std::vector<WindowRow> rows = run.sink.windows;
  ASSERT_EQ(rows.size(), 4U);
  run.sink.on_window = {};
  go_on(run);
  rows.insert(rows.end(), run.sink.windows.begin(), run.sink.windows.end());
  ASSERT_EQ(rows.size(), whole.sink.windows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].step.first_non_finite, whole.sink.windows[i].step.first_non_finite) << i;
    EXPECT_EQ(rows[i].step.first_non_finite.empty(), i != 1) << i;
  }
  EXPECT_EQ(first_difference(newest(run), newest(whole)), "");
}

// The limit comes in the midst of the run, below what any window or a copy for saving takes.
TEST(Ends, F9_OutOfMemoryLeavesTheStateOfTheLastWholeWindow) {
  SmallRun whole(40);
  whole.config.max_steps = 9;
  whole.run();
  SmallRun run(40);
  run.config.max_steps = 9;
  run.config.save_interval = {};
  run.sink.on_window = [](const WindowRow& row) {
    if (row.step.window == 5) limit_tensor_memory(tensor_memory_bytes() + 64);
  };
  try {
    run.run();
    ADD_FAILURE() << "did not run out of memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kOutOfMemory) << error.what();
  }
  limit_tensor_memory(0);
  EXPECT_EQ(newest(run).engine.counters.updates, 5);
  run.sink.on_window = {};
  go_on(run);
  EXPECT_EQ(first_difference(newest(run), newest(whole)), "");
}

// "As many as there are cores" is another number on another machine, and another number changes the bits.
TEST(Threads, TheNumberReallyUsedIsKeptAndCompared) {
  SmallRun run;
  run.config.epochs = 2;
  run.config.stop_after = 1;
  run.config.threads = 2;
  run.run();
  EXPECT_EQ(newest(run).settings.at("threads"), "2");
  run.config.threads = 1;
  Trainer trainer(run.job(), solo());
  trainer.resume(*newest_checkpoint(run.out.path()));
  ASSERT_EQ(trainer.warnings().size(), 1U);
  EXPECT_THAT(trainer.warnings()[0], HasSubstr("threads was 2, is 1"));
}

TEST(Names, C12_StateThatBelongsToAnotherNameIsRefused) {
  SmallRun run;
  run.config.epochs = 2;
  run.config.stop_after = 2;
  run.run();
  FoundCheckpoint found = *newest_checkpoint(run.out.path());
  for (auto& [name, tensor] : found.state.optimizer) {
    if (name == "fc1.bias.exp_avg") name = "fc9.bias.exp_avg";
  }
  Trainer trainer(run.job(), solo());
  EXPECT_THAT(message_of<CheckpointError>([&] { trainer.resume(found); }),
              ::testing::AllOf(HasSubstr("fc1.bias.exp_avg"), HasSubstr(found.path)));
}

TEST(Names, C12_ParametersInAnotherOrderAreRefused) {
  SmallRun run;
  run.config.epochs = 2;
  run.config.stop_after = 2;
  run.run();
  FoundCheckpoint found = *newest_checkpoint(run.out.path());
  std::swap(found.state.model[0], found.state.model[2]);
  Trainer trainer(run.job(), solo());
  EXPECT_THAT(message_of<CheckpointError>([&] { trainer.resume(found); }), HasSubstr("fc"));
}

}  // namespace
}  // namespace gradstep::testing
