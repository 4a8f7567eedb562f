// What a window that went wrong calls for, by policy.
#include "run/trouble.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gradstep {
namespace {

TroublePolicy with(Reaction on_not_finite, Reaction on_spike = Reaction::kGoOn) {
  return {.on_not_finite = on_not_finite, .on_spike = on_spike};
}

TEST(Trouble, AWindowThatWentWellCallsForNothing) {
  EXPECT_EQ(reaction_to({}, with(Reaction::kStop, Reaction::kStop)), Reaction::kGoOn);
}

TEST(Trouble, FollowsThePolicy) {
  const StepReport bad{.loss = std::nan(""), .outcome = StepOutcome::kNotFinite};
  EXPECT_EQ(reaction_to(bad, with(Reaction::kGoOn, Reaction::kStop)), Reaction::kGoOn);
  EXPECT_EQ(reaction_to(bad, with(Reaction::kStop)), Reaction::kStop);
  EXPECT_EQ(reaction_to(bad, with(Reaction::kRollBack)), Reaction::kRollBack);
  const StepReport spike{.loss = 9, .outcome = StepOutcome::kSpike, .spike = SpikeFinding{.value = 9}};
  EXPECT_EQ(reaction_to(spike, with(Reaction::kStop, Reaction::kGoOn)), Reaction::kGoOn);
  EXPECT_EQ(reaction_to(spike, with(Reaction::kGoOn, Reaction::kStop)), Reaction::kStop);
  EXPECT_EQ(reaction_to(spike, with(Reaction::kGoOn, Reaction::kRollBack)), Reaction::kRollBack);
}

// fp16 begins with a scale that is meant to overflow.
TEST(Trouble, TheScalersDailyWorkPasses) {
  StepReport overflow{.loss = 2, .loss_scale = 65536, .outcome = StepOutcome::kNotFinite};
  EXPECT_TRUE(is_scaler_overflow(overflow));
  EXPECT_EQ(reaction_to(overflow, with(Reaction::kStop)), Reaction::kGoOn);
  overflow.loss_scale = 1;
  EXPECT_EQ(reaction_to(overflow, with(Reaction::kStop)), Reaction::kStop);
  overflow = {.loss = std::nan(""), .loss_scale = 65536, .outcome = StepOutcome::kNotFinite};
  EXPECT_EQ(reaction_to(overflow, with(Reaction::kStop)), Reaction::kStop);
}

}  // namespace
}  // namespace gradstep
