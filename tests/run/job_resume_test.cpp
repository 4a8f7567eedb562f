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

TEST(Job, AResumeWithMomentumThatBeginsOrEndsIsRefused) {
  for (const auto& [was, is] : {std::pair(0.0, 0.9), std::pair(0.9, 0.0)}) {
    RankedRun run(1);
    run.job.engine.optimizer = {.kind = OptimizerKind::kSgd, .momentum = was};
    run.job.length.stop_after = 3;
    run.run();
    ASSERT_EQ(run.ranks[0]->error, "");
    run.job.engine.optimizer.momentum = is;
    run.go_on();
    EXPECT_EQ(run.ranks[0]->code, ExitCode::kUsage);
    EXPECT_THAT(run.ranks[0]->error, AllOf(HasSubstr("momentum was "), Not(HasSubstr("accept_drift"))));
  }
}

}  // namespace
}  // namespace gradstep::testing
