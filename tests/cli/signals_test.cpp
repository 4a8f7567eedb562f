// no torch
// Stop signals: each is a request with its own exit code, the first one wins, and a second SIGINT leaves at
// once.
#include "cli/signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace gradstep {
namespace {

class InstalledSignals {
 public:
  InstalledSignals() { install_stop_signals(token); }
  ~InstalledSignals() { restore_stop_signals(); }
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

TEST(StopSignals, WhatWasThereBeforeComesBack) {
  const auto before = std::signal(SIGUSR1, SIG_IGN);
  {
    InstalledSignals signals;
  }
  EXPECT_EQ(std::signal(SIGUSR1, before), SIG_IGN);
}

}  // namespace
}  // namespace gradstep
