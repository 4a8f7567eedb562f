// How runs end: with the data, by a request to stop, early, or diverged (cases D3, D6); and when they are
// evaluated.
#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <thread>

#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "support/hooked_file_system.h"
#include "support/message_of.h"
#include "support/small_run.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<int64_t> evaluated_updates(const RecordingSink& sink) {
  std::vector<int64_t> updates;
  for (const EvalRow& row : sink.evals) updates.push_back(row.update);
  return updates;
}

// SGD whose first update throws the weights so far that nothing is finite afterwards.
void explode(RunConfig& config) {
  config.opt = "sgd";
  config.sched = "constant";
  config.lr = 1e38;
}

TEST(RunEnds, WithTheDataEvenIfSkipsLeaveUpdatesOpen) {
  SmallRun run(9);
  explode(run.config);
  run.config.epochs = 3;
  const RunEnd end = run.run();
  EXPECT_EQ(run.sink.windows.size(), 9U);
  EXPECT_EQ(end.update, 1);
  EXPECT_EQ(end.skipped_total, 8);
  EXPECT_EQ(end.total_updates, 9);
  EXPECT_EQ(end.reason, EndReason::kDone);
}

TEST(RunEnds, ARunThatChangedNothingSaysSo) {
  SmallRun run(9);
  Job job = run.job();
  job.data.eval = nullptr;
  const auto loss_sum = job.task.loss_sum;
  job.task.loss_sum = [loss_sum](const at::Tensor& outputs, const Batch& batch) {
    return loss_sum(outputs, batch) * NAN;
  };
  Trainer trainer(std::move(job), solo());
  const RunEnd end = trainer.run(run.sink, run.stop, posix_file_system(), run.out.path());
  EXPECT_EQ(end.update, 0);
  ASSERT_FALSE(run.sink.events.empty());
  EXPECT_THAT(std::get<Warning>(run.sink.events.back().event).text,
              HasSubstr("no window of 3 made an update"));
}

// It would go on for ever: it ends after so many updates, and no window makes any.
TEST(RunEnds, AnEpochOfWhichNoSampleCountsIsRefused) {
  SmallRun run(9);
  run.config.max_steps = 5;
  Job job = run.job();
  int64_t num_weighed = 0;
  job.task.weight = [&num_weighed](const Batch& batch) {
    num_weighed += batch.size();
    return num_weighed < 9 ? 1.0 : 0.0;  // none after the second window
  };
  Trainer trainer(std::move(job), solo());
  const std::string message = message_of<DataError>(
      [&] { (void)trainer.run(run.sink, run.stop, posix_file_system(), run.out.path()); });
  EXPECT_THAT(message, AllOf(HasSubstr("no sample of the last 3 windows"), HasSubstr("correct the targets")));
  EXPECT_EQ(run.sink.windows.size(), 5U);
  EXPECT_EQ(list_checkpoints(run.out.path()), std::vector<int64_t>{2});  // what it had learnt is kept
}

TEST(RunEnds, WithMaxStepsFurtherWindowsAreDrawn) {
  SmallRun run(9);
  // A gradient of one sample alone, times the first scale of 65536, overflows in fp16 once the activations
  // have grown a little.
  run.config.precision = "fp16";
  run.config.batch_size = run.config.grad_accum_steps = 1;
  run.config.max_steps = 12;
  run.config.opt = "sgd";
  run.config.lr = 3;
  run.config.sched = "constant";
  const RunEnd end = run.run();
  EXPECT_GT(end.skipped_total, 0);
  EXPECT_EQ(end.update, 12);
  EXPECT_EQ(run.sink.windows.size(), static_cast<size_t>(12 + end.skipped_total));
  EXPECT_LT(run.sink.windows.back().step.loss_scale, 65536);
}

TEST(RunEnds, D3_DivergedKeepsTheLastGoodModel) {
  SmallRun run(9);
  explode(run.config);
  run.config.max_steps = 100;
  run.out.write("model.safetensors", "the last good one");
  const std::string message = message_of<Diverged>([&] { run.run(); });
  EXPECT_THAT(message,
              AllOf(HasSubstr("window 21"), HasSubstr("first in "), HasSubstr("`lr`"), Not(HasSubstr("\n"))));
  EXPECT_EQ(run.out.read("model.safetensors"), "the last good one");
  EXPECT_EQ(run.out.num_entries(), 3);  // with the black box and the checkpoint of the first epoch
  EXPECT_TRUE(std::filesystem::exists(run.out.file("blackbox-00000002.safetensors")));
  ASSERT_EQ(run.sink.windows.size(), 21U);  // one update, then 20 skips, the last of which has its row
  EXPECT_TRUE(run.sink.windows.back().step.diverged);
  EXPECT_TRUE(run.sink.windows.back().step.skipped());
  EXPECT_FALSE(run.sink.windows.back().step.first_non_finite.empty());
  EXPECT_THAT(message, HasSubstr(run.sink.windows.back().step.first_non_finite));
  EXPECT_GE(run.sink.num_flushes, 1);
  EXPECT_TRUE(run.sink.ends.empty());
  EXPECT_EQ(Diverged("").exit_code(), ExitCode::kDiverged);
}

TEST(RunEnds, D6_NotFiniteShowsInItsOwnRow) {
  SmallRun run(9);
  explode(run.config);
  run.config.epochs = 1;
  run.run();
  EXPECT_TRUE(std::isfinite(run.sink.windows[0].step.loss));
  EXPECT_FALSE(run.sink.windows[0].step.skipped());
  for (size_t i = 1; i < 3; ++i) {
    const StepReport& step = run.sink.windows[i].step;
    EXPECT_FALSE(std::isfinite(step.loss) && std::isfinite(step.grad_norm)) << i;
    EXPECT_TRUE(step.skipped());
    EXPECT_EQ(step.skipped_total, static_cast<int64_t>(i));
    EXPECT_EQ(step.update, 1);
    EXPECT_EQ(step.lr, 1e38);  // of the update that did not happen
  }
}

TEST(RunEnds, AStopFinishesTheUpdateUnderWayAndWritesTheModel) {
  SmallRun run(9);
  run.config.epochs = 3;
  run.sink.on_window = [&](const WindowRow& row) {
    if (row.step.window == 4) run.stop.request(ExitCode::kSigterm);
  };
  const RunEnd end = run.run();
  EXPECT_EQ(end.update, 4);
  EXPECT_EQ(end.reason, EndReason::kStopped);
  EXPECT_EQ(end.stopped_by, ExitCode::kSigterm);
  EXPECT_TRUE(run.sink.evals.empty());  // whoever wants to leave does not wait for an evaluation
  EXPECT_EQ(run.model().metadata.at("gradstep.update"), "4");
  EXPECT_EQ(run.sink.ends.size(), 1U);
}

TEST(RunEnds, AStopBeforeTheFirstUpdateWritesTheModelToo) {
  SmallRun run(9);
  run.stop.request(ExitCode::kSigusr1);
  const RunEnd end = run.run();
  EXPECT_EQ(end.update, 0);
  EXPECT_EQ(end.reason, EndReason::kStopped);
  EXPECT_EQ(end.stopped_by, ExitCode::kSigusr1);
  EXPECT_EQ(run.model().metadata.at("gradstep.update"), "0");
}

// 2,500 samples are three evaluation batches; a request that comes before them ends the evaluation without a
// row.
TEST(RunEnds, AStopCutsAnEvaluationShort) {
  SmallRun run(9, 2500);
  run.config.epochs = 2;
  run.config.eval_interval = {1, Interval::Unit::kEpochs};
  run.sink.on_window = [&](const WindowRow& row) {
    if (row.step.window == 3) run.stop.request(ExitCode::kSigint);
  };
  const RunEnd end = run.run();
  EXPECT_EQ(end.update, 3);
  EXPECT_EQ(end.reason, EndReason::kStopped);
  EXPECT_EQ(end.stopped_by, ExitCode::kSigint);
  EXPECT_TRUE(run.sink.evals.empty());
  EXPECT_FALSE(std::filesystem::exists(run.out.file("best.safetensors")));
  EXPECT_TRUE(std::filesystem::exists(run.out.file("model.safetensors")));
}

StopToken* g_stop_in_evaluation = nullptr;

// topk is called in evaluations only, once a batch.
std::unique_ptr<at::ObserverContext> request_in_evaluation(const at::RecordFunction& op) {
  if (std::string_view(op.name()) == "aten::topk") g_stop_in_evaluation->request(ExitCode::kSigterm);
  return nullptr;
}

TEST(RunEnds, AnEvaluationThatAStopCutShortIsMadeAtTheSameUpdateAfterGoingOn) {
  const auto prepare = [](SmallRun& run) {
    run.config.epochs = 2;
    run.config.eval_interval = {2, Interval::Unit::kUpdates};
  };
  SmallRun whole(9, 2500);
  prepare(whole);
  whole.run();
  ASSERT_THAT(evaluated_updates(whole.sink), ElementsAre(2, 4, 6));

  SmallRun run(9, 2500);
  prepare(run);
  g_stop_in_evaluation = &run.stop;
  const at::CallbackHandle handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(request_in_evaluation));
  const RunEnd end = run.run();
  at::removeCallback(handle);
  EXPECT_EQ(end.reason, EndReason::kStopped);
  EXPECT_EQ(end.stopped_by, ExitCode::kSigterm);
  EXPECT_EQ(end.update, 2);
  EXPECT_TRUE(run.sink.evals.empty());

  const std::optional<FoundCheckpoint> found = newest_checkpoint(run.out.path());
  ASSERT_TRUE(found.has_value());
  Trainer trainer(run.job(), solo());
  trainer.resume(*found);
  trainer.run(run.sink, StopToken(), posix_file_system(), run.out.path());
  EXPECT_THAT(evaluated_updates(run.sink), ElementsAre(2, 4, 6));
  const auto differences =
      compare_states(newest_checkpoint(run.out.path())->state, newest_checkpoint(whole.out.path())->state);
  EXPECT_TRUE(differences.empty()) << differences.front().what << ": " << differences.front().detail;
}

TEST(RunEnds, ARequestAfterTheLastEvaluationFindsTheRunDone) {
  SmallRun run(9);
  run.sink.on_eval = [&](const EvalRow&) { run.stop.request(ExitCode::kSigterm); };
  EXPECT_EQ(run.run().reason, EndReason::kDone);
}

TEST(RunEnds, ARequestBeforeTheLastEvaluationDoesNot) {
  SmallRun run(9);
  run.sink.on_window = [&](const WindowRow& row) {
    if (row.step.window == 3) run.stop.request(ExitCode::kSigterm);
  };
  const RunEnd end = run.run();
  EXPECT_EQ(end.update, end.total_updates);
  EXPECT_EQ(end.reason, EndReason::kStopped);
  EXPECT_EQ(end.stopped_by, ExitCode::kSigterm);
}

TEST(RunEnds, EarlyStopAfterEvaluationsWithoutABetterOne) {
  SmallRun run(9);
  run.config.epochs = 50;
  run.config.lr = 0;  // nothing ever gets better than the first evaluation
  run.config.eval_interval = {1, Interval::Unit::kEpochs};
  run.config.early_stop_patience = 2;
  const RunEnd end = run.run();
  EXPECT_EQ(end.reason, EndReason::kEarlyStop);
  EXPECT_EQ(end.update, 9);
  EXPECT_THAT(evaluated_updates(run.sink), ElementsAre(3, 6, 9));
  EXPECT_TRUE(run.sink.evals[0].best);
  EXPECT_FALSE(run.sink.evals[1].best);
  EXPECT_EQ(end.best_eval->update, 3);
  EXPECT_EQ(run.model("best.safetensors").metadata.at("gradstep.update"), "3");
  EXPECT_EQ(run.model().metadata.at("gradstep.update"), "9");
}

TEST(RunEnds, ACompleteRunIsDoneHoweverItsLastEvaluationCameOut) {
  SmallRun run(9);
  run.config.epochs = 3;
  run.config.lr = 0;
  run.config.eval_interval = {1, Interval::Unit::kEpochs};
  run.config.early_stop_patience = 2;
  EXPECT_EQ(run.run().reason, EndReason::kDone);
  run.config.eval_interval = {6, Interval::Unit::kUpdates};  // the last evaluation is the one at the end
  run.config.early_stop_patience = 1;
  EXPECT_EQ(run.run().reason, EndReason::kDone);
}

TEST(RunEnds, BestIsTheBestByAccuracy) {
  SmallRun run(60, 40);
  run.config.epochs = 12;
  run.config.lr = 3e-2;
  run.config.eval_interval = {1, Interval::Unit::kEpochs};
  const RunEnd end = run.run();
  double best = -1;
  int64_t best_update = 0;
  for (const EvalRow& row : run.sink.evals) {
    EXPECT_EQ(row.best, row.value("val_acc") > best) << row.update;
    if (row.value("val_acc") <= best) continue;
    best = *row.value("val_acc");
    best_update = row.update;
  }
  EXPECT_EQ(end.best_eval->value("val_acc"), best);
  EXPECT_EQ(run.model("best.safetensors").metadata.at("gradstep.update"), std::to_string(best_update));
}

TEST(RunEnds, ANotFiniteEvaluationIsNeverTheBest) {
  SmallRun run(9);
  explode(run.config);
  run.config.epochs = 2;
  run.config.eval_interval = {1, Interval::Unit::kEpochs};
  const RunEnd end = run.run();
  ASSERT_EQ(run.sink.evals.size(), 2U);
  EXPECT_FALSE(std::isfinite(run.sink.evals[0].val_loss));
  EXPECT_FALSE(run.sink.evals[0].best);
  EXPECT_FALSE(end.best_eval.has_value());
  EXPECT_FALSE(std::filesystem::exists(run.out.file("best.safetensors")));
}

TEST(RunEnds, EvaluationsByUpdatesEpochsSecondsOrOnlyAtTheEnd) {
  SmallRun run(9);  // 3 windows an epoch
  run.config.epochs = 4;
  const auto evaluated = [&](Interval interval) {
    run.config.eval_interval = interval;
    run.run();
    return evaluated_updates(run.sink);
  };
  EXPECT_THAT(evaluated({}), ElementsAre(12));
  EXPECT_THAT(evaluated({5, Interval::Unit::kUpdates}), ElementsAre(5, 10, 12));
  EXPECT_THAT(evaluated({4, Interval::Unit::kUpdates}), ElementsAre(4, 8, 12));  // not twice at the end
  EXPECT_THAT(evaluated({2, Interval::Unit::kEpochs}), ElementsAre(6, 12));
  EXPECT_THAT(evaluated({3600, Interval::Unit::kSeconds}), ElementsAre(12));
  EXPECT_EQ(evaluated({1e-9, Interval::Unit::kSeconds}).size(), 12U);
}

TEST(RunEnds, EvaluationChangesNothingOfTheTraining) {
  SmallRun run(50);
  run.config.epochs = 3;
  run.set("dropout", "0.5");
  run.run();
  const std::vector<at::Tensor> weights = run.weights();
  const std::vector<double> losses = run.losses();
  run.config.eval_interval = {1, Interval::Unit::kUpdates};
  run.run();
  EXPECT_TRUE(same_bytes(run.weights(), weights));
  EXPECT_EQ(run.losses(), losses);
}

// A disk that fails once ends the run, but loses nothing of it.
TEST(RunEnds, F9_AnErrorOfASaveLeavesTheLastWindowAllTheSame) {
  for (const std::string file : {"/checkpoints/", ".best.safetensors"}) {
    SmallRun run(9);
    run.config.epochs = 3;
    run.config.save_interval = run.config.eval_interval = {2, Interval::Unit::kUpdates};
    int failures_left = 1;
    HookedFileSystem disk(posix_file_system(), [&](const std::string& what, const std::string& path) {
      if (what == "write" && path.find(file) != std::string::npos && failures_left-- > 0)
        throw std::system_error(EIO, std::generic_category(), "cannot write " + path);
    });
    Trainer trainer(run.job(), solo());
    EXPECT_THAT(message_of<CheckpointError>([&] { trainer.run(run.sink, run.stop, disk, run.out.path()); }),
                HasSubstr("Input/output error"));
    const auto newest = newest_checkpoint(run.out.path());
    ASSERT_TRUE(newest);
    EXPECT_EQ(newest->state.engine.counters.windows, run.sink.windows.back().step.window);
    EXPECT_GE(run.sink.windows.size(), 2U);
    EXPECT_TRUE(!newest->state.best_eval || run.out.read("best.safetensors") != "") << file;
  }
}

// With little time the checkpoint is what counts: the file for others waits for the next start.
TEST(RunEnds, UnderAShortGraceTheModelFileIsLeftOut) {
  SmallRun run(9);
  run.config.epochs = 1000;
  run.config.save_interval = {2, Interval::Unit::kUpdates};
  run.config.grace = 0.5;
  // Each save takes 0.3 s: one may be under way, and no more than one fits.
  HookedFileSystem disk(posix_file_system(), [](const std::string& what, const std::string& path) {
    if (what == "rename" && path.find("step-") != std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  std::chrono::steady_clock::time_point requested;
  run.sink.on_window = [&](const WindowRow& row) {
    if (row.step.window != 7) return;
    requested = std::chrono::steady_clock::now();
    run.stop.request(ExitCode::kSigterm);
  };
  Trainer trainer(run.job(), solo());
  RunEnd end = trainer.run(run.sink, run.stop, disk, run.out.path());
  EXPECT_GE(std::chrono::steady_clock::now() - requested, std::chrono::milliseconds(290));
  EXPECT_EQ(newest_checkpoint(run.out.path())->state.engine.counters.windows, 7);
  EXPECT_FALSE(std::filesystem::exists(run.out.file("model.safetensors")));
  EXPECT_EQ(end.model_path, "");
  EXPECT_TRUE(end.resumable);
}

}  // namespace
}  // namespace gradstep::testing
