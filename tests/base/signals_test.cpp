// no torch
// Stop signals: each is a request with its own exit code, the first one wins, and a second SIGINT leaves at
// once.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "gradstep/base/stop.h"

namespace gradstep {
namespace {

class InstalledSignals {
 public:
  InstalledSignals() { install_stop_signals(token); }
  ~InstalledSignals() { detach_stop_signals(); }
  InstalledSignals(const InstalledSignals&) = delete;
  InstalledSignals& operator=(const InstalledSignals&) = delete;
  StopToken token;
};

TEST(StopSignals, EachRequestsAStopWithItsCode) {
  for (const auto& [signal_number, code] :
       {std::pair(SIGINT, ExitCode::kSigint), std::pair(SIGTERM, ExitCode::kSigterm),
        std::pair(SIGUSR1, ExitCode::kSigusr1)}) {
    InstalledSignals signals;
    EXPECT_FALSE(signals.token.requested());
    std::raise(signal_number);
    ASSERT_TRUE(signals.token.requested());
    EXPECT_EQ(signals.token.reason(), code);
  }
}

TEST(StopSignals, TheFirstOneWinsAndATermTwiceIsPatient) {
  InstalledSignals signals;
  std::raise(SIGTERM);
  std::raise(SIGTERM);
  std::raise(SIGINT);
  EXPECT_EQ(signals.token.reason(), ExitCode::kSigterm);
}

TEST(StopSignalsDeathTest, ASecondInterruptLeavesAtOnce) {
  EXPECT_EXIT(
      {
        InstalledSignals signals;
        std::raise(SIGINT);
        std::raise(SIGINT);
        for (;;) pause();
      },
      testing::ExitedWithCode(130), "");
}

// The exit code of a process on its way out is settled.
TEST(StopSignals, DoNothingOnceDetached) {
  {
    InstalledSignals signals;
  }
  std::raise(SIGTERM);
  std::raise(SIGUSR1);
  std::raise(SIGINT);
}

TEST(StopSignalsDeathTest, ASecondInterruptStillLeavesOnceDetached) {
  EXPECT_EXIT(
      {
        {
          InstalledSignals signals;
          std::raise(SIGINT);
        }
        std::raise(SIGINT);
      },
      testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace gradstep
