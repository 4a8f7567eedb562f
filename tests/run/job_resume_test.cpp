// What a job says of itself decides whether a resume is the same run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "gradstep/base/error.h"
#include "gradstep/run/job.h"
#include "gradstep/run/trainer.h"
#include "support/message_of.h"
#include "support/ranked_run.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Job, AResumeComparesTheEngineBesideSettingsOfItsOwn) {
  RankedRun run(1);
  run.job.settings = {{"width", "64"}};
  run.job.length.stop_after = 3;
  run.run();
  ASSERT_EQ(run.ranks[0]->error, "");
  run.job.engine.seed = 7;
  run.go_on();
  EXPECT_THAT(run.ranks[0]->error, HasSubstr("seed was 0, is 7"));
}

// Of the toy's samples, with another fingerprint.
class Named final : public Dataset {
 public:
  Named(std::shared_ptr<const Dataset> samples, std::function<std::string()> name)
      : samples_(std::move(samples)), name_(std::move(name)) {}
  [[nodiscard]] const DatasetSpec& spec() const override { return samples_->spec(); }
  [[nodiscard]] int64_t size() const override { return samples_->size(); }
  [[nodiscard]] Batch gather(const at::Tensor& ids, const Draw& draw) const override {
    return samples_->gather(ids, draw);
  }
  [[nodiscard]] std::string fingerprint() const override { return name_(); }

 private:
  std::shared_ptr<const Dataset> samples_;
  std::function<std::string()> name_;
};

// A file cannot hold the bytes; the run is still the same.
TEST(Job, TextsThatAreNotUtf8AreNoDrift) {
  RankedRun run(1);
  std::string fingerprint = "a\xff";
  run.prepare = [&](int64_t, RankedRun::Rank& rank) {
    rank.job.data.train = std::make_shared<Named>(rank.job.data.train, [name = fingerprint] { return name; });
  };
  run.job.settings = {{"text", "a\xff"}, {"key\xff", "a"}};
  run.job.length.stop_after = 3;
  run.run();
  ASSERT_EQ(run.ranks[0]->error, "");
  run.go_on();
  EXPECT_EQ(run.ranks[0]->error, "");
  EXPECT_THAT(run.events<SettingChanged>(), ::testing::IsEmpty());
  run.job.settings[0].text = "b\xff";
  run.go_on();
  EXPECT_THAT(run.ranks[0]->error, HasSubstr("belongs to a different run: text was a"));
  fingerprint = "b\xff";
  run.job.accept_drift = true;
  run.go_on();
  EXPECT_EQ(run.ranks[0]->error, "");
  EXPECT_EQ(run.events<SettingChanged>().size(), 2U);
}

TEST(Job, AFingerprintThatThrowsEndsTheRunBeforeItBegins) {
  RankedRun run(1);
  run.prepare = [](int64_t, RankedRun::Rank& rank) {
    rank.job.data.train = std::make_shared<Named>(
        rank.job.data.train, []() -> std::string { throw DataError("no fingerprint today; try again"); });
  };
  run.run();
  EXPECT_EQ(run.ranks[0]->error, "no fingerprint today; try again");
  EXPECT_EQ(run.ranks[0]->num_forwards, 0);
}

TEST(Job, AResumeWithOtherGroupsIsRefused) {
  RankedRun run(1);
  run.job.length.stop_after = 3;
  run.run();
  ASSERT_EQ(run.ranks[0]->error, "");
  run.job.engine.optimizer.groups = parse_param_groups("*.bias:lr=0.5");
  run.go_on();
  EXPECT_THAT(run.ranks[0]->error, AllOf(HasSubstr("param"), HasSubstr("*.bias:lr=0.5")));
}

// Begun at 0, the buffers make the first step that of a run without a past; those that nobody needs go.
TEST(Job, R23_MomentumMayBeginAndEndAtAResume) {
  for (const auto& [was, is] : {std::pair(0.0, 0.9), std::pair(0.9, 0.0)}) {
    SCOPED_TRACE(was);
    RankedRun run(1);
    run.job.engine.optimizer = {.kind = OptimizerKind::kSgd, .momentum = was};
    run.job.length.stop_after = 3;
    run.run();
    ASSERT_EQ(run.ranks[0]->error, "");
    run.job.engine.optimizer.momentum = is;
    run.job.length.stop_after.reset();
    run.go_on();
    ASSERT_EQ(run.ranks[0]->error, "");
    EXPECT_EQ(run.ranks[0]->end->update, 6);
    EXPECT_EQ(run.newest().optimizer.empty(), is == 0);
    ASSERT_THAT(run.events<SettingChanged>(), ::testing::SizeIs(1));
    EXPECT_EQ(run.events<SettingChanged>()[0].key, "momentum");
  }
}

TEST(Job, WithDriftAcceptedNewMomentsBeginAtZero) {
  const auto change = [](const std::function<void(Job&)>& first, const std::function<void(Job&)>& then) {
    auto run = std::make_unique<RankedRun>(1);
    first(run->job);
    run->job.length.stop_after = 3;
    run->run();
    first(run->job);
    then(run->job);
    run->job.length.stop_after.reset();
    run->go_on();
    EXPECT_THAT(run->ranks[0]->error, HasSubstr("belongs to a different run"));
    run->job.accept_drift = true;
    run->go_on();
    EXPECT_EQ(run->ranks[0]->error, "");
    return run;
  };
  const auto freeze = [](Job& job) { job.engine.optimizer.groups = parse_param_groups("0.*:frozen"); };
  const auto unfreeze = [](Job& job) { job.engine.optimizer.groups = {}; };
  const auto to_sgd = [](Job& job) { job.engine.optimizer.kind = OptimizerKind::kSgd; };
  const auto nothing = [](Job&) {};
  const auto step_of = [](const RankedRun& run, const std::string& name) {
    for (const auto& [each, tensor] : run.newest().optimizer) {
      if (each == name) return tensor.item<float>();
    }
    return -1.0F;
  };
  const auto thawed = change(freeze, unfreeze);
  EXPECT_EQ(step_of(*thawed, "0.weight.step"), 3);  // of the second start alone
  EXPECT_EQ(step_of(*thawed, "2.weight.step"), 6);
  const auto frozen = change(nothing, freeze);
  EXPECT_EQ(step_of(*frozen, "0.weight.step"), -1);
  EXPECT_EQ(step_of(*frozen, "2.weight.step"), 6);
  const auto sgd = change(nothing, to_sgd);
  EXPECT_EQ(sgd->ranks[0]->end->update, 6);
  EXPECT_EQ(step_of(*sgd, "2.weight.step"), -1);
}

}  // namespace
}  // namespace gradstep::testing
