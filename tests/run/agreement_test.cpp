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

TEST(Agreement, OneRanksExceptionEndsAllOfThem) {
  std::vector<std::string> said(3);
  std::vector<ExitCode> codes(3);
  run_ranks(3, [&](World& world) {
    std::exception_ptr own;
    if (world.rank() == 1) own = std::make_exception_ptr(CheckpointError("step-00000012 is broken"));
    const auto rank = static_cast<size_t>(world.rank());
    try {
      throw_together(own, at::kCPU, world);
    } catch (const Error& error) {
      said[rank] = error.what();
      codes[rank] = error.exit_code();
    }
  });
  EXPECT_EQ(said[1], "step-00000012 is broken");
  for (const size_t rank : {0, 2}) EXPECT_EQ(said[rank].substr(0, 13), "rank 1 failed");
  for (const ExitCode code : codes) EXPECT_EQ(code, ExitCode::kCheckpoint);
}

TEST(Agreement, NobodysExceptionThrowsNothing) {
  run_ranks(2, [&](World& world) { EXPECT_NO_THROW(throw_together(nullptr, at::kCPU, world)); });
  EXPECT_NO_THROW(throw_together(nullptr, at::kCPU, solo()));
}

}  // namespace
}  // namespace gradstep::testing
