// What may change between two starts of a run, what is told, and what is refused (case C9).
#include "run/drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/run_settings.h"
#include "base/number_text.h"
#include "gradstep/base/error.h"
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
  state.total_updates = 469;
  state.dataset_fingerprint = "abc";
  state.best_metric = "val_acc";
  return state;
}

struct Now {
  std::shared_ptr<RunSettings> settings = std::make_shared<RunSettings>(program().catalog);
  RunConfig& config = settings->config;
  int64_t global_batch = 128;
  int64_t total_updates = 469;
  std::string fingerprint = "abc";
  std::string best_metric = "val_acc";

  Now() { config.precision = "bf16"; }

  [[nodiscard]] std::vector<Drift> drift(const TrainState& before = stored()) const {
    const Settings texts = settings->texts({});
    return find_drift(before, {texts, global_batch, total_updates, fingerprint, best_metric});
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
  EXPECT_THAT(refused([](Now& now) { now.total_updates = 938; }),
              HasSubstr("updates of the run (`epochs`, `max_steps`) was 469, is 938"));
  EXPECT_THAT(refused([](Now& now) { now.config.sched = "linear"; }),
              HasSubstr("sched was cosine, is linear"));
  EXPECT_THAT(refused([](Now& now) { now.config.warmup_steps = 5; }), HasSubstr("warmup_steps"));
  EXPECT_THAT(refused([](Now& now) { now.config.dataset = "mnist"; }), HasSubstr("dataset"));
  EXPECT_THAT(refused([](Now& now) { now.config.val_fraction = 0.1; }), HasSubstr("val_fraction"));
}

TEST(Drift, AcceptDriftIsNotAdvisedForAnotherOptimizerOrOtherFrozenParameters) {
  const auto refusal = [](const char* key, const char* text) {
    Now now;
    now.settings->set(key, text, "");
    return now.refusal();
  };
  EXPECT_THAT(refusal("param_groups", "fc1.*:lr=0.5"), HasSubstr("`accept_drift`"));
  // A name is no freeze.
  EXPECT_THAT(refusal("param_groups", "frozen_stem.*:lr=0.1"), HasSubstr("`accept_drift`"));
  for (const std::string& text : {refusal("param_groups", "fc1.*:frozen"), refusal("opt", "sgd")})
    EXPECT_THAT(text, AllOf(HasSubstr("or another `output_dir`"), Not(HasSubstr("accept_drift"))));
  EXPECT_THAT(refusal("opt", "sgd"), HasSubstr("opt was adamw, is sgd"));
  Now sgd;
  sgd.config.opt = "sgd";
  EXPECT_EQ(sgd.refusal(/*accept=*/true), refusal("opt", "sgd"));
}

TEST(Drift, GroupsThatFreezeTheSameMayChangeOtherwise) {
  const auto refusal = [](const std::string& was, const std::string& is) {
    TrainState before = stored();
    before.settings["param_groups"] = was;
    Now now;
    now.settings->set("param_groups", is, "");
    return now.refusal(/*accept=*/true, before);
  };
  EXPECT_EQ(refusal("fc2.*:frozen; fc1.*:lr=0.1", "fc2.*:frozen; fc1.*:lr=0.2"), "");
  EXPECT_THAT(refusal("fc2.*:frozen; fc1.*:lr=0.1", "fc1.*:frozen; fc2.*:lr=0.1"), HasSubstr("param_groups"));
}

// SGD without momentum has no moments to go on from; AdamW does not look at it.
TEST(Drift, MomentumThatBeginsOrEndsIsRefusedUnlessAnotherOptimizerRuns) {
  const auto drift = [](const std::string& opt, double was, double is) {
    TrainState before = stored();
    before.settings["opt"] = opt;
    before.settings["momentum"] = shortest(was);
    Now now;
    now.config.opt = opt;
    now.config.momentum = is;
    return now.drift(before);
  };
  for (const auto& [was, is] : {std::pair(0.0, 0.9), std::pair(0.9, 0.0)}) {
    const std::vector<Drift> drifts = drift("sgd", was, is);
    ASSERT_EQ(drifts.size(), 1U);
    const std::string refusal = message_of<ConfigError>([&] { refuse_drift(drifts, "step-1", false); });
    EXPECT_THAT(refusal, AllOf(HasSubstr("momentum was " + shortest(was) + ", is " + shortest(is)),
                               HasSubstr("or another `output_dir`"), Not(HasSubstr("accept_drift"))));
    EXPECT_THROW(refuse_drift(drifts, "step-1", /*accept_drift=*/true), ConfigError);
    EXPECT_EQ(drift("adamw", was, is).at(0).kind, OnResume::kWarned);
  }
  EXPECT_EQ(drift("sgd", 0.9, 0.5).at(0).kind, OnResume::kWarned);
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
