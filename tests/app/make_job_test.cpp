// From settings to a job: every setting arrives, and what cannot fit into memory is refused.
#include "app/make_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gradstep/base/error.h"
#include "support/gradstep_program.h"
#include "support/idx_files.h"
#include "support/message_of.h"

namespace gradstep::testing {
namespace {

// Pictures of 28 x 28: tensors of 203,530 parameters, namely gradients, and parameters and two moments with
// their copies for saving; one window of 128; half floats of one sample.
TEST(LeastMemory, CountsParametersWindowsAndASample) {
  const DatasetSpec spec{"fashion-mnist", {28, 28}, 10};
  const auto bytes = [&](const RunConfig& config) {
    return least_memory(config, RunSettings(program().catalog).model().size(spec),
                        Sampler(60'000, config.global_batch(1), uint64_t{0}), spec, 1);
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
  const EngineOptions options = engine_options(config);
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
  EXPECT_EQ(engine_options({}).optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_EQ(engine_options({}).spikes.z_score, 0);  // --on-spike off
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
