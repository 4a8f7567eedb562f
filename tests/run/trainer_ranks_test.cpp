// Two ranks in threads make the run that one makes, and end together: at the end, by a stop, by an error of
// one. Ranks that do not act alike fail the test in thread_world.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "gradstep/gradstep.h"
#include "support/hooked_file_system.h"
#include "support/ranked_run.h"
#include "support/saves.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Rank = RankedRun::Rank;

TEST(TrainerRanks, TwoMakeTheRunOfOneBitForBit) {
  const auto make = [](RankedRun& run) {
    run.job.length.epochs = 2;
    run.job.engine.clip_grad = 0.5;
    run.job.engine.ema_decay = 0.9;
    run.run();
  };
  // The last window has one sample: rank 1 has none.
  RankedRun one(1, 25);
  make(one);
  RankedRun two(2, 25);
  make(two);
  expect_same_ends(two);
  EXPECT_EQ(first_difference(two.newest(), of_two(one.newest())), "");
  const std::vector<WindowRow>& rows = two.ranks[0]->sink.windows;
  const std::vector<WindowRow>& expected = one.ranks[0]->sink.windows;
  ASSERT_EQ(rows.size(), expected.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].step.window, expected[i].step.window);
    EXPECT_EQ(rows[i].step.update, expected[i].step.update);
    EXPECT_EQ(rows[i].step.loss, expected[i].step.loss) << i;
    EXPECT_EQ(rows[i].step.grad_norm, expected[i].step.grad_norm) << i;
    EXPECT_EQ(rows[i].step.samples, expected[i].step.samples);
    EXPECT_EQ(rows[i].samples, expected[i].samples);
  }
}

// Other pieces are other orders of a sum in fp32.
TEST(TrainerRanks, OtherPiecesAndEvaluationsDifferByRoundingOnly) {
  const auto make = [](RankedRun& run) {
    run.has_eval_part = true;
    run.job.length.epochs = 3;
    run.job.engine.micro_batch = 3;
    run.job.eval.interval = {2, Interval::Unit::kUpdates};
    run.run();
  };
  RankedRun one(1);
  make(one);
  RankedRun two;
  make(two);
  expect_same_ends(two);
  const std::vector<EvalRow>& rows = two.ranks[0]->sink.evals;
  const std::vector<EvalRow>& expected = one.ranks[0]->sink.evals;
  ASSERT_EQ(rows.size(), expected.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].update, expected[i].update);
    EXPECT_EQ(rows[i].samples, expected[i].samples);
    EXPECT_EQ(rows[i].metrics, expected[i].metrics);
    EXPECT_EQ(rows[i].best, expected[i].best);
    EXPECT_NEAR(rows[i].val_loss, expected[i].val_loss, 1e-5) << i;
  }
  EXPECT_EQ(two.ranks[1]->end->best_eval->update, one.ranks[0]->end->best_eval->update);
  EXPECT_EQ(two.ranks[1]->end->last_eval->val_loss, rows.back().val_loss);
  const std::vector<at::Tensor> weights = two.ranks[1]->weights();
  for (size_t i = 0; i < weights.size(); ++i)
    EXPECT_TRUE(at::allclose(weights[i], one.ranks[0]->weights()[i], 1e-4, 1e-5)) << i;
}

TEST(TrainerRanks, AStopOfOneEndsBothAfterTheSameWindowAndBothGoOn) {
  const auto prepare = [](RankedRun& run) {
    run.has_eval_part = true;
    run.job.length.epochs = 2;
    run.job.eval.interval = {3, Interval::Unit::kUpdates};
    run.job.save.interval = {};
  };
  RankedRun whole;
  prepare(whole);
  whole.run();
  for (const int64_t stopped : {0, 1}) {
    RankedRun run;
    prepare(run);
    run.prepare = [&](int64_t number, Rank& rank) {
      if (number != stopped) return;
      rank.job.task.forward = [&rank, forward = rank.job.task.forward](const Batch& batch) {
        if (rank.num_forwards == 5) rank.stop.request(ExitCode::kSigterm);
        return forward(batch);
      };
    };
    run.run();
    expect_same_ends(run);
    EXPECT_EQ(run.ranks[0]->end->update, 5);
    EXPECT_EQ(run.ranks[0]->end->reason, EndReason::kStopped);
    EXPECT_EQ(run.ranks[0]->end->stopped_by, ExitCode::kSigterm);
    EXPECT_EQ(run.newest().engine.counters.updates, 5);
    run.prepare = {};
    run.go_on();
    expect_same_ends(run);
    EXPECT_EQ(run.ranks[0]->end->reason, EndReason::kDone);
    EXPECT_THAT(run.ranks[0]->sink.windows, SizeIs(7));
    EXPECT_EQ(first_difference(run.newest(), whole.newest()), "");
    EXPECT_TRUE(same_bytes(run.ranks[1]->weights(), whole.ranks[1]->weights()));
  }
}

// The writing of the last model is after the last window, and before the last agreement.
TEST(TrainerRanks, AStopOfOneAfterTheLastWindowGivesBothTheSameReason) {
  RankedRun run;
  run.job.length.stop_after = 3;
  HookedFileSystem disk(posix_file_system(), [&](const std::string& what, const std::string& path) {
    if (what == "rename" && path.ends_with("/model.safetensors"))
      run.ranks[1]->stop.request(ExitCode::kSigterm);
  });
  run.disk = &disk;
  run.run();
  expect_same_ends(run);
}

// The file for others is missing where rank 0 writes, and there where the other one looks.
TEST(TrainerRanks, AFinishedRunWithoutItsModelWritesItAgain) {
  RankedRun run;
  run.run();
  const ScratchDir other;
  const std::string model = run.out.read("model.safetensors");
  other.write("model.safetensors", model);
  std::filesystem::remove(run.out.file("model.safetensors"));
  run.prepare = [&](int64_t number, Rank& rank) {
    if (number == 1) rank.output_dir = other.path();
  };
  run.go_on();
  for (const auto& rank : run.ranks) EXPECT_EQ(rank->error, "");
  EXPECT_EQ(run.out.read("model.safetensors"), model);
  EXPECT_THAT(run.ranks[0]->sink.windows, IsEmpty());
}

// Throws `error` at rank 1's forward passes of these numbers, counted in training.
void throw_at(RankedRun& run, int64_t first, int64_t last, std::function<void()> error) {
  run.prepare = [=](int64_t number, Rank& rank) {
    if (number != 1) return;
    rank.job.task.forward = [=, &rank, forward = rank.job.task.forward](const Batch& batch) {
      if (rank.num_forwards >= first && rank.num_forwards <= last) error();
      return forward(batch);
    };
  };
}

void out_of_memory() { TORCH_CHECK_WITH(OutOfMemoryError, false, "no memory for 4 bytes"); }
[[noreturn]] void own_error() { throw std::runtime_error("the user's own"); }

TEST(TrainerRanks, OutOfMemoryOfOneHalvesTheMicroBatchOfBoth) {
  RankedRun run;
  throw_at(run, 3, 3, out_of_memory);
  run.run();
  expect_same_ends(run);
  EXPECT_THAT(run.events<OutOfMemory>(), ::testing::ElementsAre(OutOfMemory{.window = 3, .micro_batch = 1}));
  EXPECT_EQ(run.newest().engine.micro_batch, 1);
  // Two windows in one piece, one that was begun twice, and three in two pieces.
  for (const auto& rank : run.ranks) EXPECT_EQ(rank->num_forwards, 2 + 1 + 2 + 3 * 2);
}

TEST(TrainerRanks, OutOfMemoryWithOneSampleEndsBothWithTheLastWholeWindow) {
  RankedRun run;
  throw_at(run, 4, 1000, out_of_memory);
  run.run();
  expect_same_errors(run, ExitCode::kOutOfMemory);
  EXPECT_THAT(run.ranks[0]->error, HasSubstr("out of memory in window 4 with a micro-batch of 1"));
  EXPECT_EQ(run.newest().engine.counters.windows, 3);
  RankedRun whole;
  whole.run();
  run.prepare = {};
  run.go_on();
  expect_same_ends(run);
  EXPECT_EQ(first_difference(run.newest(), whole.newest()), "");
}

TEST(TrainerRanks, AnErrorOfOneTaskEndsBothWithTheLastWholeWindow) {
  RankedRun run;
  throw_at(run, 4, 4, own_error);
  run.run();
  expect_same_errors(run, ExitCode::kUnexpected);
  EXPECT_EQ(run.ranks[1]->error, "the user's own");
  EXPECT_THAT(run.ranks[0]->error, HasSubstr("rank 1 failed, and all ranks end with it"));
  EXPECT_EQ(run.newest().engine.counters.windows, 3);
}

TEST(TrainerRanks, AnErrorOfOneInAnEvaluationEndsBoth) {
  RankedRun run;
  run.has_eval_part = true;
  run.job.eval.interval = {3, Interval::Unit::kUpdates};
  run.job.save.interval = {};
  run.prepare = [](int64_t number, Rank& rank) {
    if (number != 1) return;
    rank.job.task.forward = [&rank, forward = rank.job.task.forward](const Batch& batch) {
      if (!rank.net->is_training()) own_error();
      return forward(batch);
    };
  };
  run.run();
  expect_same_errors(run, ExitCode::kUnexpected);
  EXPECT_EQ(run.ranks[1]->error, "the user's own");
  EXPECT_THAT(run.ranks[0]->error, HasSubstr("rank 1 failed"));
  EXPECT_EQ(run.newest().engine.counters.windows, 3);
}

// Samples of which one cannot be read.
class BrokenSamples final : public Dataset {
 public:
  BrokenSamples(std::shared_ptr<const Dataset> whole, int64_t broken)
      : whole_(std::move(whole)), broken_(broken) {}
  [[nodiscard]] const DatasetSpec& spec() const override { return whole_->spec(); }
  [[nodiscard]] int64_t size() const override { return whole_->size(); }
  [[nodiscard]] Batch gather(const at::Tensor& ids, const Draw& draw) const override {
    if ((ids == broken_).any().item<bool>()) throw DataError("sample 14 is broken");
    return whole_->gather(ids, draw);
  }
  [[nodiscard]] std::string fingerprint() const override { return whole_->fingerprint(); }

 private:
  std::shared_ptr<const Dataset> whole_;
  int64_t broken_;
};

// The third sample of the fourth window is rank 1's.
TEST(TrainerRanks, ASampleThatOneCannotReadEndsBothWithTheLastWholeWindow) {
  for (const int64_t num_workers : {0, 1}) {
    RankedRun run;
    run.job.num_workers = num_workers;
    run.prepare = [](int64_t, Rank& rank) {
      rank.job.data.train = std::make_shared<BrokenSamples>(rank.job.data.train, 14);
    };
    run.run();
    expect_same_errors(run, ExitCode::kData);
    EXPECT_EQ(run.ranks[1]->error, "sample 14 is broken");
    EXPECT_THAT(run.ranks[0]->error, HasSubstr("rank 1 failed"));
    EXPECT_THAT(run.ranks[0]->sink.windows, SizeIs(3));
    EXPECT_EQ(run.newest().engine.counters.windows, 3);
  }
}

// Of window 3, of the evaluation at the end, or of the end, when the last state is saved. No checkpoint
// passes over a row that is lost.
TEST(TrainerRanks, ARowThatCannotBeWrittenEndsBoth) {
  for (const std::string lost : {"window", "evaluation", "end"}) {
    SCOPED_TRACE(lost);
    RankedRun run;
    run.has_eval_part = true;
    run.job.eval.interval = run.job.save.interval = {};
    run.prepare = [&](int64_t, Rank& rank) {
      const auto full = [](const auto&) {
        throw std::system_error(ENOSPC, std::generic_category(), "metrics.jsonl");
      };
      if (lost == "end") rank.sink.on_end = full;
      if (lost == "evaluation") rank.sink.on_eval = full;
      if (lost != "window") return;
      rank.sink.on_window = [full](const WindowRow& row) {
        if (row.step.window == 3) full(row);
      };
    };
    run.run();
    expect_same_errors(run, ExitCode::kCheckpoint);
    EXPECT_THAT(run.ranks[0]->error, HasSubstr("metrics.jsonl"));
    EXPECT_THAT(run.ranks[1]->error, HasSubstr("rank 0 failed"));
    for (const auto& rank : run.ranks) EXPECT_EQ(rank->num_forwards, lost == "window" ? 3 : 6);
    EXPECT_EQ(newest_checkpoint(run.out.path()).has_value(), lost == "end");
  }
}

TEST(TrainerRanks, AFolderWithoutRoomEndsBothBeforeTheFirstWindow) {
  RankedRun run;
  HookedFileSystem disk(posix_file_system(), [](const std::string&, const std::string&) {});
  disk.num_free_bytes = 1;
  run.disk = &disk;
  run.run();
  expect_same_errors(run, ExitCode::kCheckpoint);
  EXPECT_THAT(run.ranks[0]->error, HasSubstr("free"));
  EXPECT_THAT(run.ranks[1]->error, HasSubstr("rank 0 failed"));
  for (const auto& rank : run.ranks) EXPECT_EQ(rank->num_forwards, 0);
}

// Sums gradients up until it fails.
class FailingOptimizer final : public Optimizer {
 public:
  FailingOptimizer(std::vector<TrainedParameter> parameters, int64_t fails_at)
      : Optimizer(std::move(parameters)), fails_at_(fails_at) {}
  void step(double lr, const at::Tensor& /*found_inf*/) override {
    if (++num_steps_ == fails_at_) own_error();
    const at::NoGradGuard no_grad;
    for (const auto& [name, tensor] : parameters()) at::Tensor(tensor).sub_(tensor.grad() * lr);
  }
  [[nodiscard]] NamedTensors state() const override { return {}; }

 private:
  int64_t fails_at_;
  int64_t num_steps_ = 0;
};

TEST(TrainerRanks, AnErrorOfOneOptimizerEndsBoth) {
  for (const double z_score : {0.0, 6.0}) {  // with spikes the loss is shared before the optimizer's step
    RankedRun run;
    run.job.engine.spikes.z_score = z_score;
    run.prepare = [](int64_t number, Rank& rank) {
      rank.job.engine.make_optimizer = [number](std::vector<TrainedParameter> parameters) {
        return std::make_unique<FailingOptimizer>(std::move(parameters), number == 1 ? 4 : -1);
      };
    };
    run.run();
    expect_same_errors(run, ExitCode::kUnexpected);
    EXPECT_EQ(run.ranks[1]->error, "the user's own");
    EXPECT_THAT(run.ranks[0]->error, HasSubstr("failed"));
    // A state in the midst of an update is not saved. Where the loss is shared first, rank 0 made the update.
    EXPECT_EQ(run.newest().engine.counters.windows, z_score == 0 ? 2 : 4);
  }
}

TEST(TrainerRanks, WhatOnlyOneRankRefusesEndsBoth) {
  const std::vector<std::pair<ExitCode, std::function<void(Rank&)>>> faults = {
      {ExitCode::kUsage, [](Rank& rank) { rank.job.num_workers = -1; }},
      {ExitCode::kData,
       [](Rank& rank) { rank.job.task.user_state = []() -> UserState { throw DataError("no state"); }; }},
      {ExitCode::kUsage,
       [](Rank& rank) { rank.job.engine.schedule.function = [](int64_t k) { return k == 3 ? NAN : 0.01; }; }},
      {ExitCode::kUnexpected, [](Rank& rank) {
         rank.job.task.metrics.at(0).value = [](double, double) -> double { own_error(); };
       }}};
  for (size_t i = 0; i < faults.size(); ++i) {
    for (const int64_t bad : {0, 1}) {
      RankedRun run;
      run.has_eval_part = true;
      run.job.eval.interval = {2, Interval::Unit::kUpdates};
      run.prepare = [&](int64_t number, Rank& rank) {
        if (i == 2) rank.job.engine.schedule.function = [](int64_t) { return 0.01; };
        if (number == bad) faults[i].second(rank);
      };
      run.run();
      SCOPED_TRACE(std::to_string(i) + " by " + std::to_string(bad));
      expect_same_errors(run, faults[i].first);
      EXPECT_THAT(run.ranks[static_cast<size_t>(1 - bad)]->error,
                  HasSubstr("rank " + std::to_string(bad) + " failed"));
    }
  }
}

}  // namespace
}  // namespace gradstep::testing
