// Faults that were reported on runs of version 0.1, by number: what a resume keeps, where the learning rate
// goes, infinities on purpose, windows of one sample, a stop within a window, a machine with other work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "run/speed_watch.h"
#include "support/message_of.h"
#include "support/saves.h"
#include "support/small_run.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Goes on from the newest checkpoint of `run` into `folder`.
RunEnd go_on(SmallRun& run, const std::string& folder, std::vector<std::string>* warnings = nullptr) {
  run.sink.windows.clear();
  run.sink.evals.clear();
  run.sink.events.clear();
  const FoundCheckpoint found = newest_checkpoint(run.out.path()).value();
  Trainer trainer(run.job(solo(), &found.state), solo());
  trainer.resume(found);
  const std::vector<std::string> of_output = trainer.prepare_output(posix_file_system(), folder);
  if (warnings != nullptr) {
    *warnings = trainer.warnings();
    warnings->insert(warnings->end(), of_output.begin(), of_output.end());
  }
  return trainer.run(run.sink, run.stop, posix_file_system(), folder);
}

TEST(RunReports, R15_ABestModelComesAlongIntoAnotherFolder) {
  for (const bool file_is_there : {true, false}) {
    SmallRun run;
    run.config.epochs = 4;
    run.config.eval_interval = {1, Interval::Unit::kUpdates};
    run.config.early_stop_patience = 100;
    run.config.ema = 0.5;
    run.config.stop_after = 4;
    const RunEnd end = run.run();
    ASSERT_TRUE(end.best_eval);
    const std::string best = run.out.read("best.safetensors");
    const std::string averaged = run.out.read("best-ema.safetensors");
    if (!file_is_there) std::filesystem::remove(run.out.file("best.safetensors"));
    run.config.stop_after = 1;
    run.config.lr = 0;  // no evaluation is better than the best so far
    const ScratchDir other;
    std::vector<std::string> warnings;
    const RunEnd last = go_on(run, other.path(), &warnings);
    ASSERT_EQ(run.sink.evals.size(), 1U);
    ASSERT_TRUE(last.best_eval);
    if (file_is_there) {
      EXPECT_FALSE(run.sink.evals[0].best);
      EXPECT_EQ(last.best_eval->update, end.best_eval->update);
      EXPECT_EQ(other.read("best.safetensors"), best);
      EXPECT_EQ(other.read("best-ema.safetensors"), averaged);
    } else {
      EXPECT_TRUE(run.sink.evals[0].best);
      const auto tells = [](const EventRow& each) {
        const auto* warning = std::get_if<Warning>(&each.event);
        return warning != nullptr &&
               warning->text.find("the next evaluation is the best again") != std::string::npos;
      };
      EXPECT_TRUE(std::ranges::any_of(run.sink.events, tells));
    }
  }
}

// What another run left there stays, since the run is refused.
TEST(RunReports, R15_ARefusedRunCopiesNothing) {
  SmallRun run;
  run.config.epochs = 4;
  run.config.eval_interval = {1, Interval::Unit::kUpdates};
  run.config.stop_after = 2;
  run.run();
  SmallRun other;
  other.config.max_steps = 1;
  other.run();
  other.out.write("best.safetensors", "of another run");
  EXPECT_THROW(go_on(run, other.out.path()), ConfigError);
  EXPECT_EQ(other.out.read("best.safetensors"), "of another run");
}

TEST(RunReports, R17_ABestOnOtherEvaluationDataIsForgottenAndTold) {
  SmallRun run;
  run.config.epochs = 4;
  run.config.eval_interval = {1, Interval::Unit::kUpdates};
  run.config.stop_after = 3;
  run.run();
  run.config.stop_after = 1;
  run.config.lr = 0;
  write_idx_part(run.data, "t10k", 20, /*seed=*/77);
  std::vector<std::string> warnings;
  go_on(run, run.out.path(), &warnings);
  ASSERT_EQ(run.sink.evals.size(), 1U);
  EXPECT_TRUE(run.sink.evals[0].best);
  EXPECT_THAT(warnings, Contains(HasSubstr("evaluation data was ")));
}

TEST(RunReports, R17_ModelFilesKnowTheirData) {
  SmallRun run;
  run.config.max_steps = 1;
  run.run();
  const ModelInfo info = read_model_file(run.out.file("model.safetensors")).info;
  const Job job = run.job();
  EXPECT_EQ(info.train_data, job.data.train->fingerprint());
  EXPECT_EQ(info.eval_data, job.data.eval->fingerprint());
  EXPECT_FALSE(info.settings.contains("train_data"));
}

// 16 samples in windows of 4: two epochs are 8 updates. After 3 the windows are of 2, so 10 are left.
TEST(RunReports, R24_TheLearningRateReachesItsEndAfterAcceptedDrift) {
  SmallRun run(16);
  run.config.epochs = 2;
  run.config.stop_after = 3;
  run.config.min_lr = 0.001;
  run.config.lr = 0.1;
  run.run();
  run.config.stop_after.reset();
  run.config.grad_accum_steps = 1;
  run.config.accept_drift = true;
  std::vector<std::string> warnings;
  RunEnd end = go_on(run, run.out.path(), &warnings);
  EXPECT_EQ(end.update, 13);
  EXPECT_EQ(end.total_updates, 13);
  const LrSchedule schedule{.peak = 0.1, .min = 0.001, .total_steps = 13};
  std::vector<double> expected;
  for (int64_t update = 4; update <= 13; ++update) expected.push_back(schedule.at(update));
  EXPECT_EQ(run.rates(), expected);
  EXPECT_EQ(run.rates().back(), 0.001);
  EXPECT_THAT(warnings,
              Contains(AllOf(HasSubstr("over 13 updates now instead of 8"), HasSubstr("update 4"))));
}

// A later start of the same settings goes on with that length, and asks nothing.
TEST(RunReports, R24_ThatLengthStaysAtTheNextResume) {
  SmallRun run(16);
  run.config.epochs = 2;
  run.config.stop_after = 3;
  run.run();
  run.config.stop_after = 4;
  run.config.grad_accum_steps = 1;
  run.config.accept_drift = true;
  go_on(run, run.out.path());
  run.config.accept_drift = false;
  run.config.stop_after.reset();
  std::vector<std::string> warnings;
  const RunEnd end = go_on(run, run.out.path(), &warnings);
  EXPECT_EQ(end.update, 13);
  EXPECT_EQ(run.rates().back(), LrSchedule({.peak = run.config.lr, .total_steps = 13}).at(13));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(RunReports, R43_ABufferMayHoldInfinitiesAndNoNaN) {
  SmallRun run;
  run.config.max_steps = 3;
  Job job = run.job();
  const auto mask = at::full({2, 2}, -std::numeric_limits<float>::infinity());
  const at::Tensor buffer = job.task.module->register_buffer("mask", mask.triu(1));
  {
    Trainer trainer(job, solo());
    EXPECT_EQ(trainer.run(run.sink, run.stop, posix_file_system(), run.out.path()).update, 3);
  }
  TrainState state = newest_checkpoint(run.out.path())->state;
  EXPECT_EQ(state.num_buffers, 1);
  EXPECT_TRUE(same_bytes(tensor_named(state.model, "mask"), mask.triu(1)));
  EXPECT_NO_THROW(write_checkpoint(posix_file_system(), run.out.path(), state));
  tensor_named(state.model, "mask").fill_(std::nan(""));
  EXPECT_THAT(message_of<Diverged>([&] { write_checkpoint(posix_file_system(), run.out.path(), state); }),
              HasSubstr("buffer mask holds NaN"));
  state = newest_checkpoint(run.out.path())->state;
  state.model[0].second.view(-1)[0] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(write_checkpoint(posix_file_system(), run.out.path(), state), Diverged);
}

// Classification of vectors through batch norm, as a layer or as a function.
Task batch_norm_task(bool as_a_layer) {
  torch::nn::Sequential model{torch::nn::Flatten(), torch::nn::Linear(16, 4)};
  if (as_a_layer) model->push_back(torch::nn::BatchNorm1d(4));
  model->push_back(torch::nn::Linear(4, 10));
  Task task = classification_task(model);
  task.prepare = [](const Batch& batch) { return Batch{batch.inputs.to(at::kFloat), batch.targets}; };
  if (!as_a_layer) {
    task.forward = [model](const Batch& batch) {
      const at::Tensor hidden = batch.inputs.flatten(1).narrow(1, 0, 4);
      const at::Tensor normed =
          at::batch_norm(hidden, {}, {}, {}, {}, model->is_training(), 0.1, 1e-5, false);
      return model->ptr(2)->as<torch::nn::Linear>()->forward(normed);
    };
    // Else the first layer would have no part in the loss.
    for (at::Tensor& parameter : model->ptr(1)->parameters()) parameter.requires_grad_(false);
  }
  return task;
}

TEST(RunReports, R49_AWindowOfOneSampleIsRefusedAtTheStartWhereTheModelCannotTakeIt) {
  for (const bool as_a_layer : {true, false}) {
    const auto refusal = [&](int64_t samples, int64_t micro_batch, int64_t window) -> std::string {
      SmallRun run(samples);
      run.config.batch_size = micro_batch;
      run.config.global_batch_size = window;
      Job job = run.job();
      job.task = batch_norm_task(as_a_layer);
      try {
        const Trainer trainer(job, solo());
        return "";
      } catch (const ConfigError& error) {
        return error.what();
      }
    };
    EXPECT_THAT(refusal(9, 4, 4),
                AllOf(HasSubstr("value per channel"),
                      HasSubstr("the last window of an epoch has 1 sample (9 samples, windows of 4)"),
                      Not(HasSubstr("\n"))));
    EXPECT_THAT(refusal(8, 1, 4), HasSubstr("micro-batches of 1"));
    EXPECT_EQ(refusal(8, 4, 4), "");
    // A last micro-batch of one joins the one before it if a layer says that this is needed.
    EXPECT_EQ(refusal(10, 4, 5).empty(), as_a_layer);
  }
}

TEST(RunReports, R49_PicturesOfManyPixelsGoThroughAlone) {
  SmallRun run(9);
  run.config.max_steps = 3;
  Job job = run.job();
  torch::nn::Sequential model{torch::nn::Conv2d(1, 3, 3), torch::nn::BatchNorm2d(3), torch::nn::Flatten(),
                              torch::nn::Linear(12, 10)};
  job.task = classification_task(model);
  job.task.prepare = [](const Batch& batch) {
    return Batch{batch.inputs.to(at::kFloat).unsqueeze(1) / 255, batch.targets};
  };
  Trainer trainer(job, solo());
  EXPECT_EQ(trainer.run(run.sink, run.stop, posix_file_system(), run.out.path()).update, 3);
}

// The stop comes within a window that would last for longer than the grace.
TEST(RunReports, R36_AStopEndsALongWindowAndNothingIsLost) {
  const auto prepare = [](SmallRun& run) {
    run.config.batch_size = 1;
    run.config.global_batch_size = 64;
    run.config.max_steps = 2;
    run.config.grace = 0.3;
  };
  SmallRun whole(64);
  prepare(whole);
  whole.run();
  SmallRun run(64);
  prepare(run);
  {
    Job job = run.job();
    const auto forward = job.task.forward;
    int64_t num_calls = 0;
    job.task.forward = [&, forward](const Batch& batch) {
      if (++num_calls == 70) run.stop.request(ExitCode::kSigterm);
      if (num_calls >= 70) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return forward(batch);
    };
    Trainer trainer(job, solo());
    const RunEnd end = trainer.run(run.sink, run.stop, posix_file_system(), run.out.path());
    EXPECT_EQ(end.reason, EndReason::kStopped);
    EXPECT_EQ(end.update, 1);
    EXPECT_LT(num_calls, 90);
    EXPECT_LT(run.stop.seconds_since(), 5);
  }
  EXPECT_EQ(run.sink.windows.size(), 1U);
  const auto is_warning = [](const EventRow& each) { return std::holds_alternative<Warning>(each.event); };
  EXPECT_TRUE(std::ranges::any_of(run.sink.events, is_warning));
  SmallRun rest(64);
  prepare(rest);
  std::filesystem::copy(run.out.path(), rest.out.path(), std::filesystem::copy_options::recursive);
  EXPECT_EQ(go_on(rest, rest.out.path()).update, 2);
  EXPECT_EQ(
      first_difference(newest_checkpoint(rest.out.path())->state, newest_checkpoint(whole.out.path())->state),
      "");
}

WindowRow row(double seconds, double data_seconds = 0) {
  WindowRow row;
  row.step.samples = 100;
  row.time_step = seconds;
  row.time_data = data_seconds;
  return row;
}

TEST(SpeedWatch, R55_SaysOnceThatARunIsTenTimesSlowerAndWhy) {
  CpuPressure pressure;
  const auto told = [&](auto change, const WindowRow& slow) {
    pressure = {.num_runnable = 1};
    SpeedWatch watch(2, [&] {
      change(pressure);
      return pressure;
    });
    for (int i = 0; i < 104; ++i) EXPECT_EQ(watch.observe(row(0.125)), std::nullopt);
    // One slow window is a hiccup.
    EXPECT_EQ(watch.observe(slow), std::nullopt);
    for (int i = 0; i < 24; ++i) EXPECT_EQ(watch.observe(row(0.125)), std::nullopt);
    EXPECT_EQ(watch.observe(slow), std::nullopt);
    const std::optional<std::string> found = watch.observe(slow);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(watch.observe(slow), std::nullopt);
    return found.value_or("nothing");
  };
  EXPECT_THAT(told([](CpuPressure& p) { p.num_runnable = 5; }, row(1.5)),
              AllOf(HasSubstr("12 times slower"), HasSubstr("others want its cores"), HasSubstr("2 cores")));
  EXPECT_THAT(told([](CpuPressure& p) { p.preemptions += 500; }, row(1.5)), HasSubstr("give way 333 times"));
  EXPECT_THAT(told([](CpuPressure& p) { p.throttled_seconds += 1.8; }, row(1.5)),
              HasSubstr("quota of its cgroup held it up 60 %"));
  EXPECT_THAT(told([](CpuPressure&) {}, row(0.25, 1.25)), HasSubstr("waits for data 83 %"));
  EXPECT_THAT(told([](CpuPressure&) {}, row(1.5)), HasSubstr("no cause"));
}

TEST(SpeedWatch, R55_NineTimesIsNothing) {
  SpeedWatch watch(2, [] { return CpuPressure{}; });
  for (int i = 0; i < 32; ++i) EXPECT_EQ(watch.observe(row(0.125)), std::nullopt);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(watch.observe(row(1.125)), std::nullopt);
}

}  // namespace
}  // namespace gradstep::testing
