// What fails on one rank ends all of them, with its exit code.
#include "dist/together.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <system_error>

#include "gradstep/base/error.h"
#include "support/thread_world.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

TEST(Together, OneRanksExceptionEndsAllOfThem) {
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

TEST(Together, NobodysExceptionThrowsNothing) {
  run_ranks(2, [&](World& world) { EXPECT_NO_THROW(throw_together(nullptr, at::kCPU, world)); });
  EXPECT_NO_THROW(throw_together(nullptr, at::kCPU, solo()));
}

// A full disk on one rank, say, which is no Error.
TEST(Together, TheCodeIsThatOfTheFailureWhateverItsType) {
  const auto code_elsewhere = [](const std::exception_ptr& failure) {
    ExitCode code = ExitCode::kOk;
    run_ranks(2, [&](World& world) {
      try {
        throw_together(world.rank() == 0 ? failure : nullptr, at::kCPU, world);
      } catch (const Error& error) {
        code = error.exit_code();
      } catch (const std::exception&) {
        EXPECT_EQ(world.rank(), 0);
      }
    });
    return code;
  };
  const auto disk = std::system_error(ENOSPC, std::generic_category());
  EXPECT_EQ(code_elsewhere(std::make_exception_ptr(disk)), ExitCode::kCheckpoint);
  EXPECT_EQ(code_elsewhere(std::make_exception_ptr(std::bad_alloc())), ExitCode::kOutOfMemory);
  EXPECT_EQ(code_elsewhere(std::make_exception_ptr(std::logic_error(""))), ExitCode::kUnexpected);
}

}  // namespace
}  // namespace gradstep::testing
