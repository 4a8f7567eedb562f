// no torch
// Stop signals: each is a request with its own exit code, the first one wins, and a second SIGINT leaves at
// once.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <new>
#include <stdexcept>

#include "gradstep/base/stop.h"

namespace gradstep {
namespace {

TEST(StopSignals, EachRequestsAStopWithItsCode) {
  for (const auto& [signal_number, code] :
       {std::pair(SIGINT, ExitCode::kSigint), std::pair(SIGTERM, ExitCode::kSigterm),
        std::pair(SIGUSR1, ExitCode::kSigusr1)}) {
    StopSignals signals;
    EXPECT_FALSE(signals.token().requested());
    std::raise(signal_number);
    ASSERT_TRUE(signals.token().requested());
    EXPECT_EQ(signals.token().reason(), code);
  }
}

TEST(StopSignals, TheFirstOneWinsAndATermTwiceIsPatient) {
  StopSignals signals;
  std::raise(SIGTERM);
  std::raise(SIGTERM);
  std::raise(SIGINT);
  EXPECT_EQ(signals.token().reason(), ExitCode::kSigterm);
}

TEST(StopSignalsDeathTest, ASecondInterruptLeavesAtOnce) {
  EXPECT_EXIT(
      {
        StopSignals signals;
        std::raise(SIGINT);
        std::raise(SIGINT);
        for (;;) pause();
      },
      testing::ExitedWithCode(130), "");
}

// The exit code of a process on its way out is settled.
TEST(StopSignals, DoNothingOnceDetached) {
  StopToken token;
  install_stop_signals(token);
  detach_stop_signals();
  for (const int signal_number : {SIGTERM, SIGUSR1, SIGINT}) std::raise(signal_number);
  EXPECT_FALSE(token.requested());
}

// The token is gone then, and whoever handled the signals before does so again.
TEST(StopSignals, AnExceptionPutsTheFormerHandlersBack) {
  static int num_seen = 0;
  const auto former = std::signal(SIGTERM, [](int) { ++num_seen; });
  try {
    StopSignals signals;
    std::raise(SIGTERM);
    EXPECT_TRUE(signals.token().requested());
    throw std::runtime_error("the run failed");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(num_seen, 0);
  std::raise(SIGTERM);
  EXPECT_EQ(num_seen, 1);
  std::signal(SIGTERM, former);
}

TEST(StopSignalsDeathTest, ASecondInterruptStillLeavesOnceDetached) {
  EXPECT_EXIT(
      {
        StopToken token;
        install_stop_signals(token);
        std::raise(SIGINT);
        detach_stop_signals();
        std::raise(SIGINT);
      },
      testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace gradstep
