// gradstep eval: the process is set as for the run that wrote the model.
#include "app/eval_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/machine.h"
#include "base/memory_limit.h"
#include "support/small_run.h"

namespace gradstep::testing {
namespace {

void reset_process() {
  limit_tensor_memory(0);
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/false);
}

TEST(EvalCommand, IsDeterministicAsTheRunWasAndHasAMemoryLimit) {
  for (const bool deterministic : {true, false}) {
    SmallRun run;
    run.config.deterministic = deterministic;
    run.run();
    reset_process();
    ::testing::internal::CaptureStdout();
    StopToken stop;
    EXPECT_EQ(run_eval({.model_path = run.out.path(), .device = "cpu", .threads = 1}, stop), 0);
    (void)::testing::internal::GetCapturedStdout();
    EXPECT_EQ(at::globalContext().deterministicAlgorithms(), deterministic);
    // Without a limit Linux would hand this out.
    EXPECT_THROW((void)at::empty({free_memory_bytes()}, at::kByte), c10::OutOfMemoryError);
    reset_process();
  }
}

}  // namespace
}  // namespace gradstep::testing
