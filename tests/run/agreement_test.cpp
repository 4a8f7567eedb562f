// Ranks that see different things act alike.
#include "run/agreement.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "support/thread_world.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

TEST(Agreement, AWorldOfOneAgreesWithItself) {
  const Facts facts =
      agree({.seconds = 3, .time_is_over = true, .stop = ExitCode::kSigint}, at::kCPU, solo());
  EXPECT_EQ(facts.seconds, 3);
  EXPECT_TRUE(facts.time_is_over);
  EXPECT_EQ(facts.stop, ExitCode::kSigint);
}

TEST(Agreement, RankZerosClockAndAnybodysWishToStop) {
  std::vector<Facts> seen(3);
  run_ranks(3, [&](World& world) {
    Facts own{.seconds = static_cast<double>(10 + world.rank()), .time_is_over = world.rank() == 1};
    if (world.rank() == 2) own.stop = ExitCode::kSigterm;
    seen[static_cast<size_t>(world.rank())] = agree(own, at::kCPU, world);
  });
  for (const Facts& facts : seen) {
    EXPECT_EQ(facts.seconds, 10);
    EXPECT_FALSE(facts.time_is_over);  // it is not, by rank 0's clock
    EXPECT_EQ(facts.stop, ExitCode::kSigterm);
  }
}

TEST(Agreement, ALostBestOfRankZeroAndAnybodysFailure) {
  std::vector<Facts> seen(2);
  run_ranks(2, [&](World& world) {
    Facts own{.failed = world.rank() == 1};
    if (world.rank() == 0) own.lost_best = 0;
    seen[static_cast<size_t>(world.rank())] = agree(own, at::kCPU, world);
  });
  for (const Facts& facts : seen) {
    EXPECT_EQ(facts.lost_best, 0);
    EXPECT_TRUE(facts.failed);
  }
}

}  // namespace
}  // namespace gradstep::testing
