// Trainer: lengths, rows and files of whole runs on small data sets (cases A6, A7, D12, K1), and that a run
// is reproducible.
#include "gradstep/run/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <numeric>

#include "gradstep/base/error.h"
#include "gradstep/checkpoint/model_file.h"
#include "support/memory_file_system.h"
#include "support/message_of.h"
#include "support/small_run.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<int64_t> column_of(const RecordingSink& sink, int64_t StepReport::* field) {
  std::vector<int64_t> values;
  for (const WindowRow& row : sink.windows) values.push_back(row.step.*field);
  return values;
}

TEST(Trainer, A6_ThreeEpochsOfNineSamples) {
  SmallRun run(9, 9);
  // The test set is the training set, and a learning rate of 0 keeps the weights: an epoch whose windows hold
  // each sample exactly once has the losses of the evaluation.
  for (const char* file : {"images-idx3-ubyte", "labels-idx1-ubyte"}) {
    run.data.write(std::string("t10k-") + file, run.data.read(std::string("train-") + file));
  }
  run.config.epochs = 3;
  run.config.lr = 0;
  const RunEnd end = run.run();
  EXPECT_EQ(end.update, 9);
  EXPECT_EQ(end.total_updates, 9);
  EXPECT_EQ(end.samples, 27);
  EXPECT_EQ(end.reason, EndReason::kDone);
  EXPECT_THAT(column_of(run.sink, &StepReport::samples), ElementsAre(4, 4, 1, 4, 4, 1, 4, 4, 1));
  EXPECT_THAT(column_of(run.sink, &StepReport::num_micro_batches), ElementsAre(2, 2, 1, 2, 2, 1, 2, 2, 1));
  EXPECT_THAT(column_of(run.sink, &StepReport::epoch), ElementsAre(0, 0, 0, 1, 1, 1, 2, 2, 2));
  ASSERT_EQ(run.sink.evals.size(), 1U);
  EXPECT_EQ(run.sink.evals[0].samples, 9);
  for (size_t epoch = 0; epoch < 3; ++epoch) {
    double sum = 0;
    for (size_t i = 0; i < 3; ++i) {
      const StepReport& step = run.sink.windows[3 * epoch + i].step;
      EXPECT_EQ(step.divisor, static_cast<double>(step.samples));
      sum += step.loss * step.divisor;
    }
    EXPECT_NEAR(sum / 9, run.sink.evals[0].val_loss, 1e-6);
  }
  EXPECT_NE(run.sink.windows[0].step.loss, run.sink.windows[3].step.loss);  // another order in each epoch
}

TEST(Trainer, A7_MaxStepsCountsUpdates) {
  SmallRun run(100);
  run.config.max_steps = 8;
  run.config.grad_accum_steps = 4;
  run.config.warmup_steps = 2;
  const RunEnd end = run.run();
  EXPECT_EQ(end.update, 8);
  const std::vector<int64_t> micro = column_of(run.sink, &StepReport::num_micro_batches);
  EXPECT_EQ(std::accumulate(micro.begin(), micro.end(), int64_t{0}), 32);
  EXPECT_THAT(column_of(run.sink, &StepReport::update), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(run.rates(), Each(Ge(0.0)));
  EXPECT_EQ(run.rates().front(), run.config.lr / 2);  // the first update moves already
  EXPECT_EQ(run.rates().back(), run.config.min_lr);
}

TEST(Trainer, K1_OneRowAWindowAndOneAxis) {
  SmallRun run(64);
  run.config.grad_accum_steps = 8;
  run.config.max_steps = 2;
  run.config.eval_interval = {1, Interval::Unit::kUpdates};
  run.run();
  const std::vector<int64_t> micro = column_of(run.sink, &StepReport::num_micro_batches);
  EXPECT_THAT(micro, ElementsAre(8, 8));
  EXPECT_THAT(column_of(run.sink, &StepReport::window), ElementsAre(1, 2));
  EXPECT_THAT(column_of(run.sink, &StepReport::update), ElementsAre(1, 2));
  ASSERT_EQ(run.sink.evals.size(), 2U);
  EXPECT_EQ(run.sink.evals[0].update, 1);
  EXPECT_EQ(run.sink.evals[1].update, 2);
  EXPECT_EQ(run.sink.windows[0].samples, 16);
  EXPECT_EQ(run.sink.windows[1].samples, 32);
}

TEST(Trainer, MaxStepsDrawsAsManyEpochsAsItTakes) {
  SmallRun run(9);
  run.config.max_steps = 7;
  EXPECT_EQ(run.run().update, 7);
  EXPECT_THAT(column_of(run.sink, &StepReport::epoch), ElementsAre(0, 0, 0, 1, 1, 1, 2));
  std::vector<int64_t> of_epoch;
  for (const WindowRow& row : run.sink.windows) of_epoch.push_back(row.window_of_epoch);
  EXPECT_THAT(of_epoch, ElementsAre(1, 2, 3, 1, 2, 3, 1));
}

TEST(Trainer, WhicheverEndsFirst) {
  SmallRun run(9);
  run.config.epochs = 2;
  run.config.max_steps = 4;
  EXPECT_EQ(run.run().total_updates, 4);
  EXPECT_EQ(run.sink.windows.size(), 4U);
  run.config.max_steps = 100;
  EXPECT_EQ(run.run().total_updates, 6);
  EXPECT_EQ(run.sink.windows.size(), 6U);
}

TEST(Trainer, ALoneEpochIsTheDefault) {
  SmallRun run(9);
  EXPECT_EQ(run.run().update, 3);
}

TEST(Trainer, LearnsWhatCanBeLearnt) {
  SmallRun run(200, 100);
  run.config.epochs = 20;
  run.set("hidden", "32");
  run.config.lr = 1e-2;
  const RunEnd end = run.run();
  EXPECT_GT(*end.last_eval->value("val_acc"), 0.95);
  EXPECT_LT(end.last_eval->val_loss, 0.3);
  EXPECT_GT(run.losses().front(), 1.5);
}

TEST(Trainer, IsTheSameTwiceAndForAnyNumberOfWorkers) {
  SmallRun run(50);
  run.config.epochs = 3;
  run.set("dropout", "0.25");  // random numbers included
  run.run();
  const std::vector<at::Tensor> weights = run.weights();
  const std::vector<double> losses = run.losses();
  for (const int64_t workers : {0, 1, 1, 2, 8}) {
    run.config.workers = workers;
    run.run();
    EXPECT_TRUE(same_bytes(run.weights(), weights)) << workers;
    EXPECT_EQ(run.losses(), losses) << workers;
  }
  run.config.seed = 1;
  run.run();
  EXPECT_FALSE(same_bytes(run.weights(), weights));
}

TEST(Trainer, TheMicroBatchChangesNeitherRatesNorNearlyTheLoss) {
  SmallRun run(50);
  run.config.epochs = 2;
  run.config.grad_accum_steps = 4;  // 8 samples an update
  run.run();
  const std::vector<double> rates = run.rates();
  const std::vector<double> losses = run.losses();
  for (const int64_t micro_batch : {1, 3, 8, 100}) {
    run.config.batch_size = micro_batch;
    run.config.global_batch_size = 8;
    run.run();
    EXPECT_EQ(run.rates(), rates);
    ASSERT_EQ(run.losses().size(), losses.size());
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(run.losses()[i], losses[i], 1e-4) << micro_batch << " " << i;
  }
}

TEST(Trainer, D12_ThePrecisionReallyUsedIsInPlanAndFile) {
  SmallRun run;
  run.config.max_steps = 1;
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    run.config.precision = precision;
    std::filesystem::remove_all(run.out.file("checkpoints"));
    Trainer trainer(run.job(), solo());
    EXPECT_EQ(trainer.plan().precision,
              precision + (precision == "fp32" ? ", matrix products by torch" : ""));
    trainer.run(run.sink, run.stop, posix_file_system(), run.out.path());
    EXPECT_EQ(run.model().metadata.at("gradstep.precision"), precision);
    for (const auto& [name, tensor] : run.model().tensors)
      EXPECT_EQ(tensor.scalar_type(), at::kFloat) << name;
    EXPECT_EQ(run.sink.windows.back().step.loss_scale, precision == "fp16" ? 65536 : 1);
  }
  std::filesystem::remove_all(run.out.file("checkpoints"));
  run.config.precision = "auto";
  run.config.matmul = "auto";
  PreparedJob prepared = make_job(run.settings, solo(), at::kCPU, nullptr);
  Trainer trainer(std::move(prepared.job), solo());
  trainer.run(run.sink, run.stop, posix_file_system(), run.out.path());
  EXPECT_THAT(trainer.plan().precision, ::testing::StartsWith(run.model().metadata.at("gradstep.precision")));
  EXPECT_NE(run.model().metadata.at("gradstep.precision"), "auto");
  EXPECT_EQ(prepared.settled.at("precision"), run.model().metadata.at("gradstep.precision"));
  EXPECT_EQ(prepared.settled.at("matmul"), run.model().metadata.at("gradstep.matmul"));
  EXPECT_EQ(run.config.precision, "auto");  // what was asked for stays
  EXPECT_FALSE(trainer.plan().precision_reason.empty());
}

TEST(Trainer, TheModelFileSaysWhatItIs) {
  SmallRun run;
  run.config.val_fraction = 0.3;
  run.config.seed = 11;
  run.config.max_steps = 5;
  run.set("label_smoothing", "0.1");
  const RunEnd end = run.run();
  EXPECT_EQ(end.model_path, run.out.file("model.safetensors"));
  const ModelInfo info = read_model_file(end.model_path).info;
  EXPECT_EQ(info.update, 5);
  EXPECT_EQ(info.settings.at("seed"), "11");
  EXPECT_EQ(info.settings.at("val_fraction"), "0.3");
  EXPECT_EQ(info.settings.at("data_dir"), run.data.path());
  EXPECT_EQ(info.settings.at("dataset"), "mnist");
  EXPECT_EQ(info.settings.at("model"), "mlp");
  EXPECT_EQ(info.settings.at("hidden"), "8");
  EXPECT_EQ(info.settings.at("label_smoothing"), "0.1");
  EXPECT_EQ(end.last_eval->samples, 3);  // of 9
}

TEST(Trainer, WithoutAFolderNothingIsWritten) {
  SmallRun run;
  MemoryFileSystem disk;
  Trainer trainer(run.job(), solo());
  EXPECT_EQ(trainer.run(run.sink, run.stop, disk, "").model_path, "");
  EXPECT_EQ(disk.num_calls(), 0);
}

TEST(Trainer, AFullDiskIsSaidAndLeavesTheOldModel) {
  SmallRun run;
  MemoryFileSystem disk;
  disk.put("/out/model.safetensors", "old");
  for (int64_t call = 0; call < 4; ++call) {
    Trainer trainer(run.job(), solo());
    disk.fail_call(call);
    const std::string message =
        message_of<CheckpointError>([&] { trainer.run(run.sink, run.stop, disk, "/out"); });
    EXPECT_THAT(message, AllOf(HasSubstr("No space left"), Not(HasSubstr("\n")))) << call;
    EXPECT_TRUE(disk.all_closed());
  }
  EXPECT_EQ(disk.content("/out/model.safetensors"), "old");
}

TEST(Trainer, SettingsThatDoNotFitTheDataAreRefused) {
  SmallRun run(9);
  run.config.epochs = 2;
  run.config.warmup_steps = 7;  // of 6 updates: case B2
  EXPECT_THAT(message_of<ConfigError>([&] { Trainer(run.job(), solo()); }),
              AllOf(HasSubstr("7"), HasSubstr("6")));
  run.config.warmup_steps = 0;
  run.config.model = "mpl";
  EXPECT_THROW(Trainer(run.job(), solo()), ConfigError);
  run.config.model = "mlp";
  run.config.precision = "fp8";
  EXPECT_THROW(Trainer(run.job(), solo()), ConfigError);
  run.config.precision = "fp32";
  run.config.device = "cuda:77";
  EXPECT_THROW(Trainer(run.job(), solo()), ConfigError);
  run.config.device = "cpu";
  std::filesystem::remove(run.data.file("t10k-labels-idx1-ubyte"));
  EXPECT_THAT(message_of<DataError>([&] { Trainer(run.job(), solo()); }), HasSubstr("t10k-labels"));
}

TEST(TrainerRun, IsCalledOnce) {
  SmallRun run;
  Trainer trainer(run.job(), solo());
  trainer.run(run.sink, run.stop, posix_file_system(), run.out.path());
  EXPECT_THAT(
      message_of<ConfigError>([&] { trainer.run(run.sink, run.stop, posix_file_system(), run.out.path()); }),
      ::testing::HasSubstr("make another Trainer"));
}

// Its checkpoints would be mixed with those of the first, and the next start go on with the wrong one.
TEST(TrainerRun, ANewRunInTheFolderOfAnotherIsRefused) {
  SmallRun run;
  run.run();
  Trainer trainer(run.job(), solo());
  EXPECT_THAT(
      message_of<ConfigError>([&] { trainer.run(run.sink, run.stop, posix_file_system(), run.out.path()); }),
      ::testing::HasSubstr("holds checkpoints of another run"));
}

// Nor is a run that comes from elsewhere.
TEST(TrainerRun, ARunThatGoesOnInTheFolderOfAnotherIsRefused) {
  SmallRun first;
  first.run();
  SmallRun second;
  second.config.seed = 1;
  second.run();
  Trainer trainer(first.job(), solo());
  trainer.resume_newest(first.out.path());
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { trainer.run(first.sink, first.stop, posix_file_system(), second.out.path()); }),
              ::testing::HasSubstr("holds checkpoints of another run"));
}

}  // namespace
}  // namespace gradstep::testing
