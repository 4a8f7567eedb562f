// From settings to a job: every setting arrives, and what cannot fit into memory is refused.
#include "app/make_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <functional>

#include "base/machine.h"
#include "gradstep/base/error.h"
#include "gradstep/model/tasks.h"
#include "support/gradstep_program.h"
#include "support/idx_files.h"
#include "support/message_of.h"
#include "support/small_run.h"

namespace gradstep::testing {
namespace {

// Pictures of 28 x 28: 203,530 parameters and their copy for saving; one window of 128; half floats of one
// sample.
TEST(LeastMemory, CountsParametersWindowsAndASample) {
  const DatasetSpec spec{"fashion-mnist", {28, 28}, 10};
  const auto bytes = [&](const RunConfig& config) {
    return least_memory(config, RunSettings(program().catalog).model().size(spec),
                        Sampler(60'000, config.global_batch(1), uint64_t{0}), spec, 1);
  };
  const RunConfig defaults;
  EXPECT_EQ(bytes({}), 8 * 203'530 + 128 * 784 + 2 * (784 + 256));
  const RunConfig config{.workers = 1024, .max_steps = 1, .batch_size = 1'000'000'000};
  EXPECT_EQ(bytes(config), 8.0 * 203'530 + 1024.0 * 60'000 * 784 + 2.0 * (784 + 256));
}

// Gradients, and two moments with their copies.
TEST(LeastMemory, CountsWhatTheParametersThatTrainNeed) {
  const auto bytes = [](const std::function<void(Job&)>& change) {
    Job job;
    torch::nn::Sequential net(torch::nn::Linear(4, 2), torch::nn::Linear(2, 1));
    net->children()[1]->register_parameter("tied", net->parameters()[0]);
    job.task.module = net.ptr();
    change(job);
    return training_memory(job);
  };
  constexpr int64_t kAll = 10 + 3;
  EXPECT_EQ(bytes([](Job&) {}), 4 * kAll * 5);
  EXPECT_EQ(bytes([](Job& job) { job.engine.optimizer.kind = OptimizerKind::kSgd; }), 4 * kAll * 3);
  EXPECT_EQ(bytes([](Job& job) { job.engine.optimizer = {.kind = OptimizerKind::kSgd, .momentum = 0}; }),
            4 * kAll);
  EXPECT_EQ(bytes([](Job& job) { job.engine.ema_decay = 0.9; }), 4 * kAll * 7);
  EXPECT_EQ(bytes([](Job& job) { job.engine.optimizer.groups = parse_param_groups("0.*:frozen"); }),
            4 * 3 * 5);
  EXPECT_EQ(bytes([](Job& job) { job.task.module->parameters()[0].requires_grad_(false); }), 4 * 5 * 5);
  // Its moments are not known.
  EXPECT_EQ(bytes([](Job& job) { job.engine.make_optimizer = [](auto) { return nullptr; }; }), 4 * kAll);
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
                                 ::testing::HasSubstr("--batch-size"),
                                 ::testing::Not(::testing::HasSubstr("--hidden"))));
  }
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
  config.param_groups = "fc1.*:lr=0.5";
  config.ema = 0.875;
  config.on_spike = OnTrouble::kSkip;
  config.spike_zscore = 4.5;
  config.spike_window = 17;
  const EngineOptions options = engine_options(config, 0);
  EXPECT_EQ(options.optimizer.kind, OptimizerKind::kSgd);
  EXPECT_EQ(options.optimizer.weight_decay, 0.125);
  EXPECT_EQ(options.optimizer.beta1, 0.5);
  EXPECT_EQ(options.optimizer.beta2, 0.75);
  EXPECT_EQ(options.optimizer.eps, 1e-3);
  EXPECT_EQ(options.optimizer.momentum, 0.375);
  EXPECT_TRUE(options.optimizer.nesterov);
  EXPECT_TRUE(options.optimizer.decay_all);
  ASSERT_EQ(options.optimizer.groups.size(), 1U);
  EXPECT_EQ(options.optimizer.groups[0].lr_factor, 0.5);
  EXPECT_EQ(options.schedule.shape, LrShape::kLinear);
  EXPECT_EQ(options.schedule.peak, 0.5);
  EXPECT_EQ(options.schedule.min, 0.25);
  EXPECT_EQ(options.schedule.warmup_steps, 7);
  EXPECT_EQ(options.micro_batch, 6);
  EXPECT_EQ(options.clip_grad, 2);
  EXPECT_EQ(options.seed, 99U);
  EXPECT_EQ(options.ema_decay, 0.875);
  EXPECT_EQ(options.spikes.z_score, 4.5);
  EXPECT_EQ(options.spikes.window, 17);
  EXPECT_EQ(engine_options({}, 0).optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_EQ(engine_options({}, 0).spikes.z_score, 0);  // --on-spike off
}

// A recipe whose data are missing, which its author has not said.
class NoData final : public Recipe {
 public:
  DatasetPair data() override { return {}; }
  Task task(const DatasetSpec& /*spec*/) override { return {}; }
};

TEST(LoadData, WithoutATrainingPartIsRefusedWithAndWithoutAValidationPart) {
  Catalog catalog;
  catalog.add_recipe("mine", [] { return std::make_shared<NoData>(); });
  for (const double val_fraction : {0.0, 0.5}) {
    RunSettings settings(catalog);
    settings.config.val_fraction = val_fraction;
    EXPECT_THAT(message_of<DataError>([&] { (void)load_data(settings); }),
                ::testing::HasSubstr("mine: has no training part"));
    EXPECT_THROW((void)load_split(settings, Split::kTrain), DataError);  // as replay asks
  }
}

TEST(LoadData, PartsThatDoNotFitAreNamedByTheirKind) {
  const ScratchDir dir;
  write_idx_dataset(dir, 4, 4);
  dir.write("t10k-images-idx3-ubyte", idx_header(0x803, {4, 2, 2}) + std::string(16, '\1'));
  RunSettings settings(program().catalog);
  settings.set("dataset", "mnist", "");
  settings.set("data_dir", dir.path(), "");
  EXPECT_THAT(message_of<DataError>([&] { (void)load_data(settings); }),
              ::testing::HasSubstr("expected test pictures of 4x4 as in the training set, found 2x2"));
}

// One validation part, whoever asks.
TEST(LoadData, PartsAloneAreThoseOfThePair) {
  const ScratchDir dir;
  write_idx_dataset(dir, 10, 4);
  RunSettings settings(program().catalog);
  settings.set("dataset", "mnist", "");
  settings.set("data_dir", dir.path(), "");
  for (const double val_fraction : {0.0, 0.3}) {
    settings.config.val_fraction = val_fraction;
    const DatasetPair pair = load_data(settings);
    EXPECT_EQ(load_split(settings, Split::kTrain)->fingerprint(), pair.train->fingerprint());
    EXPECT_EQ(load_split(settings, Split::kEval)->fingerprint(), pair.eval->fingerprint());
  }
}

// Data that remember what they were asked for.
class DrawnData final : public Dataset {
 public:
  [[nodiscard]] const DatasetSpec& spec() const override { return spec_; }
  [[nodiscard]] int64_t size() const override { return 40; }
  [[nodiscard]] Batch gather(const at::Tensor& ids, const Draw& draw) const override {
    draws.push_back(draw);
    return {.inputs = at::zeros({ids.size(0), 3}), .targets = at::zeros({ids.size(0), 1})};
  }
  [[nodiscard]] std::string fingerprint() const override { return "drawn"; }

  inline static std::vector<Draw> draws;

 private:
  DatasetSpec spec_{.name = "drawn", .input_shape = {3}};
};

class DrawnRecipe final : public Recipe {
 public:
  DatasetPair data() override { return {std::make_shared<DrawnData>(), {}}; }
  Task task(const DatasetSpec& /*spec*/) override {
    return regression_task(torch::nn::Sequential(torch::nn::Linear(3, 1)));
  }
};

TEST(MakeJob, TheProbeDrawsAsTrainingDoes) {
  Catalog catalog;
  catalog.add_recipe("mine", [] { return std::make_shared<DrawnRecipe>(); });
  RunSettings settings(catalog);
  settings.config.seed = 21;
  settings.config.warmup_steps = 0;
  DrawnData::draws.clear();
  const PreparedJob prepared = make_job(settings, solo(), at::kCPU, /*before=*/nullptr);
  ASSERT_FALSE(DrawnData::draws.empty());
  for (const Draw& draw : DrawnData::draws) {
    EXPECT_EQ(draw.seed, 21U);
    EXPECT_TRUE(draw.training);
  }
}

// --max-time means the process, the job its own run.
TEST(MakeJob, OfTheTimeItHasWhatTheProcessHasLeft) {
  SmallRun run;
  EXPECT_EQ(run.job().length.max_seconds, 0);
  run.config.max_time = 1000;
  const double left = run.job().length.max_seconds;
  EXPECT_LT(left, 1000);
  EXPECT_GE(left + process_seconds(), 1000);
  run.config.max_time = 1e-3;
  EXPECT_GT(run.job().length.max_seconds, 0);  // 0 would be no limit
  EXPECT_LT(run.job().length.max_seconds, 1e-6);
}

// All flags, and nothing beside them.
TEST(SettingsOfAJob, AreThoseOfTheFlagsInAnApp) {
  SmallRun run;
  const Settings recorded = settings_of(run.job());
  const Settings flags = run.settings.texts({});
  ASSERT_EQ(recorded.size(), flags.size());
  for (size_t i = 0; i < flags.size(); ++i) EXPECT_EQ(recorded[i].key, flags[i].key);
}

// Keys and rules stand in the flag tables and in settings_of(), for those who fill a Job themselves.
TEST(SettingsOfAJob, HaveTheRulesOfTheFlags) {
  const std::vector<FlagInfo> flags = RunSettings(program().catalog).flags();
  size_t num_flags = 0;
  for (const Setting& setting : settings_of(Job{})) {
    const auto flag = std::ranges::find(flags, setting.key, &FlagInfo::key);
    if (flag == flags.end()) continue;
    ++num_flags;
    EXPECT_EQ(setting.on_resume, flag->on_resume) << setting.key;
  }
  EXPECT_GE(num_flags, 20U);
}

}  // namespace
}  // namespace gradstep::testing
