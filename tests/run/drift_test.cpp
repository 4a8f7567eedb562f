// What may change between two starts of a run, what is told, and what is refused (case C9).
#include "run/drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/version.h>

#include "app/run_settings.h"
#include "base/number_text.h"
#include "gradstep/base/error.h"
#include "gradstep/base/version.h"
#include "support/gradstep_program.h"
#include "support/message_of.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TrainState stored() {
  RunSettings settings(program().catalog);
  settings.config.precision = "bf16";
  TrainState state;
  for (const Setting& setting : settings.texts({})) state.settings[setting.key] = setting.text;
  state.global_batch = 128;
  state.planned_updates = 469;
  state.dataset_fingerprint = "abc";
  state.eval_fingerprint = "def";
  state.best_metric = "val_acc";
  return state;
}

struct Now {
  std::shared_ptr<RunSettings> settings = std::make_shared<RunSettings>(program().catalog);
  RunConfig& config = settings->config;
  int64_t global_batch = 128;
  int64_t planned_updates = 469;
  std::string fingerprint = "abc";
  std::string eval_fingerprint = "def";
  std::string best_metric = "val_acc";

  Now() { config.precision = "bf16"; }

  [[nodiscard]] std::vector<Drift> drift(const TrainState& before = stored()) const {
    const Settings texts = settings->texts({});
    return find_drift(before, {.settings = texts,
                               .global_batch = global_batch,
                               .planned_updates = planned_updates,
                               .dataset_fingerprint = fingerprint,
                               .eval_fingerprint = eval_fingerprint,
                               .best_metric = best_metric});
  }
  // Empty: goes on.
  [[nodiscard]] std::string refusal(bool accept = false, const TrainState& before = stored()) const {
    try {
      refuse_drift(drift(before), "runs/a/checkpoints/step-00000120", accept);
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  }
};

TEST(Drift, ASettingThatTheProgramNoLongerHasIsTold) {
  TrainState before = stored();
  before.settings["label_noise"] = "0.1";
  const std::vector<Drift> drifts = Now().drift(before);
  ASSERT_EQ(drifts.size(), 1U);
  EXPECT_EQ(drifts[0].kind, OnResume::kWarned);
  EXPECT_EQ(describe(drifts[0]), "label_noise was 0.1, is no setting of this program");
}

TEST(Drift, NothingDiffersInTheSameRun) { EXPECT_THAT(Now().drift(), IsEmpty()); }

TEST(Drift, C9_DataSeedBatchModelTotalAndScheduleAreRefusedWithBothValues) {
  const auto refused = [](auto change) {
    Now now;
    change(now);
    EXPECT_EQ(now.refusal(/*accept=*/true), "");
    EXPECT_EQ(now.drift().size(), 1U);
    return now.refusal();
  };
  EXPECT_THAT(
      refused([](Now& now) { now.fingerprint = "xyz"; }),
      AllOf(HasSubstr("data was abc, is xyz"), HasSubstr("step-00000120"), HasSubstr("`accept_drift`")));
  EXPECT_THAT(refused([](Now& now) { now.config.seed = 7; }), HasSubstr("seed was 0, is 7"));
  EXPECT_THAT(refused([](Now& now) { now.global_batch = 256; }),
              HasSubstr("`global_batch_size`) was 128, is 256"));
  EXPECT_THAT(refused([](Now& now) { now.settings->set("hidden", "64", ""); }),
              HasSubstr("hidden was 256, is 64"));
  EXPECT_THAT(refused([](Now& now) { now.planned_updates = 938; }),
              HasSubstr("updates of the run (`epochs`, `max_steps`) was 469, is 938"));
  EXPECT_THAT(refused([](Now& now) { now.config.sched = "linear"; }),
              HasSubstr("sched was cosine, is linear"));
  EXPECT_THAT(refused([](Now& now) { now.config.warmup_steps = 5; }), HasSubstr("warmup_steps"));
  EXPECT_THAT(refused([](Now& now) { now.config.dataset = "mnist"; }), HasSubstr("dataset"));
  EXPECT_THAT(refused([](Now& now) { now.config.val_fraction = 0.1; }), HasSubstr("val_fraction"));
}

TEST(Drift, AnotherOptimizerIsRefusedUnlessDriftIsAccepted) {
  for (const auto& [key, text] : {std::pair("opt", "sgd"), std::pair("param_groups", "fc1.*:frozen")}) {
    Now now;
    now.settings->set(key, text, "");
    EXPECT_THAT(now.refusal(), AllOf(HasSubstr(key), HasSubstr("`accept_drift`")));
    EXPECT_EQ(now.refusal(/*accept=*/true), "");
  }
}

TEST(Drift, R23_AnotherMomentumIsTold) {
  for (const double momentum : {0.0, 0.5}) {
    Now now;
    now.config.momentum = momentum;
    ASSERT_EQ(now.drift().size(), 1U);
    EXPECT_EQ(now.drift()[0].kind, OnResume::kWarned);
  }
}

TEST(Drift, R17_OtherEvaluationDataAreTold) {
  Now now;
  now.eval_fingerprint = "xyz";
  ASSERT_EQ(now.drift().size(), 1U);
  EXPECT_EQ(now.drift()[0].kind, OnResume::kWarned);
  EXPECT_EQ(describe(now.drift()[0]), "evaluation data was def, is xyz");
  TrainState before = stored();
  before.eval_fingerprint.clear();  // of the first version
  EXPECT_THAT(now.drift(before), IsEmpty());
}

TEST(Drift, R25_AnotherGradstepOrLibTorchIsTold) {
  TrainState before = stored();
  before.version = version();
  before.git_commit = git_commit();
  before.torch_version = TORCH_VERSION;
  EXPECT_THAT(Now().drift(before), IsEmpty());
  before.git_commit = "0123456789ab";
  before.torch_version = "2.12.0";
  const std::vector<Drift> drifts = Now().drift(before);
  ASSERT_EQ(drifts.size(), 2U);
  for (const Drift& drift : drifts) EXPECT_EQ(drift.kind, OnResume::kWarned);
  EXPECT_THAT(describe(drifts[0]), HasSubstr("gradstep was 0.1.0 (commit 0123456789ab), is "));
  EXPECT_EQ(describe(drifts[1]), "LibTorch was 2.12.0, is " TORCH_VERSION);
}

TEST(Drift, LearningRatePrecisionThreadsAndMicroBatchWarn) {
  Now now;
  now.config.lr = 1e-4;
  now.config.precision = "fp32";
  now.config.threads = 3;
  now.config.batch_size = 64;
  now.config.grad_accum_steps = 2;  // the same 128
  EXPECT_EQ(now.refusal(), "");
  ASSERT_EQ(now.drift().size(), 4U);
  for (const Drift& drift : now.drift()) EXPECT_EQ(drift.kind, OnResume::kWarned) << drift.key;
}

TEST(Drift, PathsAndIntervalsAreFreeAndFlagsOfOneStartDoNotCount) {
  Now now;
  now.config.output_dir = "elsewhere";
  now.config.log_interval = 1;
  now.config.workers = 2;
  now.config.save_interval = {5, Interval::Unit::kUpdates};
  ASSERT_EQ(now.drift().size(), 4U);
  for (const Drift& drift : now.drift()) EXPECT_EQ(drift.kind, OnResume::kFree) << drift.key;
  Now other;
  other.config.resume = "auto";
  other.config.accept_drift = true;
  other.config.stop_after = 3;
  other.config.max_time = 60;
  other.config.grace = 3;
  other.config.quiet = true;
  other.config.best_metric = "val_acc";  // what auto stood for
  EXPECT_THAT(other.drift(), IsEmpty());
}

TEST(Drift, SeveralAreNamedInOneLine) {
  Now now;
  now.config.seed = 7;
  now.global_batch = 256;
  EXPECT_THAT(now.refusal(),
              AllOf(HasSubstr("seed was"), HasSubstr("global batch (`batch_size`"), Not(HasSubstr("\n"))));
}

TEST(Drift, AnotherBestMetricWarns) {
  Now now;
  now.best_metric = "val_loss";
  ASSERT_EQ(now.drift().size(), 1U);
  EXPECT_EQ(now.drift()[0].kind, OnResume::kWarned);
  EXPECT_EQ(describe(now.drift()[0]), "best_metric was val_acc, is val_loss");
}

// A checkpoint of before a setting was known was made with its default.
TEST(Drift, ASettingThatTheCheckpointLacksHadItsDefault) {
  TrainState old = stored();
  old.settings.erase("order");
  const auto drift_with = [&](SampleOrder order) {
    Now now;
    now.config.order = order;
    return now.drift(old);
  };
  EXPECT_THAT(drift_with(SampleOrder::kShuffled), IsEmpty());
  ASSERT_EQ(drift_with(SampleOrder::kSequential).size(), 1U);
  EXPECT_EQ(drift_with(SampleOrder::kSequential)[0].kind, OnResume::kRefused);
}

}  // namespace
}  // namespace gradstep::testing
