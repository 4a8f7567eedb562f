// trained: the train command, without its output on the terminal of the tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "commands/train_command.h"

namespace gradstep::testing {

// What it printed. Passes on what it throws.
inline std::string trained(const RunSettings& settings) {
  StopToken stop;
  ::testing::internal::CaptureStdout();
  try {
    EXPECT_EQ(run_train(settings, stop), 0);
  } catch (...) {
    (void)::testing::internal::GetCapturedStdout();
    throw;
  }
  return ::testing::internal::GetCapturedStdout();
}

}  // namespace gradstep::testing
