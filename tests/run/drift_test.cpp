// What may change between two starts of a run, what is told, and what is refused (case C9).
#include "run/drift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradstep/base/error.h"

namespace gradstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TrainState stored() {
  TrainState state;
  state.config.precision = "bf16";
  state.config.matmul = "onednn";
  state.global_batch = 128;
  state.total_updates = 469;
  state.dataset_fingerprint = "abc";
  return state;
}

struct Now {
  RunConfig config = stored().config;
  int64_t global_batch = 128;
  int64_t total_updates = 469;
  std::string fingerprint = "abc";

  [[nodiscard]] std::vector<Drift> drift() const {
    return find_drift(stored(), {config, global_batch, total_updates, fingerprint});
  }
  // Empty: goes on.
  [[nodiscard]] std::string refusal(bool accept = false) const {
    try {
      refuse_drift(drift(), "runs/a/checkpoints/step-00000120", accept);
      return "";
    } catch (const ConfigError& error) {
      return error.what();
    }
  }
};

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
      AllOf(HasSubstr("data was abc, is xyz"), HasSubstr("step-00000120"), HasSubstr("--accept-drift")));
  EXPECT_THAT(refused([](Now& now) { now.config.seed = 7; }), HasSubstr("seed was 0, is 7"));
  EXPECT_THAT(refused([](Now& now) { now.global_batch = 256; }),
              HasSubstr("--global-batch-size) was 128, is 256"));
  EXPECT_THAT(refused([](Now& now) { now.config.hidden = 64; }), HasSubstr("hidden was 256, is 64"));
  EXPECT_THAT(refused([](Now& now) { now.total_updates = 938; }),
              HasSubstr("updates of the run (--epochs, --max-steps) was 469, is 938"));
  EXPECT_THAT(refused([](Now& now) { now.config.sched = "linear"; }),
              HasSubstr("sched was cosine, is linear"));
  EXPECT_THAT(refused([](Now& now) { now.config.warmup_steps = 5; }), HasSubstr("warmup_steps"));
  EXPECT_THAT(refused([](Now& now) { now.config.dataset = "mnist"; }), HasSubstr("dataset"));
  EXPECT_THAT(refused([](Now& now) { now.config.opt = "sgd"; }), HasSubstr("opt was adamw, is sgd"));
  EXPECT_THAT(refused([](Now& now) { now.config.val_fraction = 0.1; }), HasSubstr("val_fraction"));
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
  now = {};
  now.config.resume = "auto";
  now.config.accept_drift = true;
  now.config.stop_after = 3;
  now.config.max_time = 60;
  now.config.grace = 3;
  now.config.quiet = true;
  EXPECT_THAT(now.drift(), IsEmpty());
}

TEST(Drift, SeveralAreNamedInOneLine) {
  Now now;
  now.config.seed = 7;
  now.global_batch = 256;
  EXPECT_THAT(now.refusal(),
              AllOf(HasSubstr("seed was"), HasSubstr("global batch (--batch-size"), Not(HasSubstr("\n"))));
}

// A new measurement might choose otherwise than the run did.
TEST(Drift, AutoKeepsWhatTheRunUsed) {
  RunConfig asked;
  EXPECT_EQ(take_settled(asked, stored().config).precision, "bf16");
  EXPECT_EQ(take_settled(asked, stored().config).matmul, "onednn");
  asked.precision = "fp32";
  EXPECT_EQ(take_settled(asked, stored().config).precision, "fp32");
}

}  // namespace
}  // namespace gradstep
