// no torch
// What a window that went wrong calls for, by flag.
#include "run/trouble.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gradstep {
namespace {

RunConfig with(const std::string& on_nonfinite, const std::string& on_spike = "off") {
  RunConfig config;
  config.on_nonfinite = on_nonfinite;
  config.on_spike = on_spike;
  return config;
}

TEST(Trouble, AWindowThatWentWellCallsForNothing) {
  EXPECT_EQ(reaction_to({}, with("stop", "stop")), Reaction::kGoOn);
}

TEST(Trouble, FollowsTheFlags) {
  const StepReport bad{.loss = std::nan(""), .outcome = StepOutcome::kNotFinite};
  EXPECT_EQ(reaction_to(bad, with("skip", "stop")), Reaction::kGoOn);
  EXPECT_EQ(reaction_to(bad, with("stop")), Reaction::kStop);
  EXPECT_EQ(reaction_to(bad, with("rollback")), Reaction::kRollBack);
  const StepReport spike{.loss = 9, .outcome = StepOutcome::kSpike, .spike = SpikeFinding{.value = 9}};
  EXPECT_EQ(reaction_to(spike, with("stop", "skip")), Reaction::kGoOn);
  EXPECT_EQ(reaction_to(spike, with("skip", "stop")), Reaction::kStop);
  EXPECT_EQ(reaction_to(spike, with("skip", "rollback")), Reaction::kRollBack);
}

// fp16 begins with a scale that is meant to overflow.
TEST(Trouble, TheScalersDailyWorkPasses) {
  StepReport overflow{.loss = 2, .loss_scale = 65536, .outcome = StepOutcome::kNotFinite};
  EXPECT_TRUE(is_scaler_overflow(overflow));
  EXPECT_EQ(reaction_to(overflow, with("stop")), Reaction::kGoOn);
  overflow.loss_scale = 1;
  EXPECT_EQ(reaction_to(overflow, with("stop")), Reaction::kStop);
  overflow = {.loss = std::nan(""), .loss_scale = 65536, .outcome = StepOutcome::kNotFinite};
  EXPECT_EQ(reaction_to(overflow, with("stop")), Reaction::kStop);
}

}  // namespace
}  // namespace gradstep
