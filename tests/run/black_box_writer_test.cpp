// Which windows leave a black box: the first of each kind.
#include "run/black_box_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <filesystem>

#include "run/run_setup.h"
#include "support/hooked_file_system.h"
#include "support/small_run.h"

namespace gradstep::testing {
namespace {

using ::testing::ElementsAre;

class BlackBoxWriterTest : public ::testing::Test {
 protected:
  void leave(BlackBoxWriter& boxes, int64_t window, StepReport step) {
    step.window = window;
    step.samples = 4;
    step.skipped_total = window;
    step.micro_batch = 2;
    step.outcome = step.spike ? StepOutcome::kSpike : StepOutcome::kNotFinite;
    boxes.leave(window_, step);
  }
  // The engine counts the window that it is told of.
  void SetUp() override {
    setup_.engine.restore({.counters = {.windows = 10, .updates = 3, .skipped_total = 7, .skips_in_a_row = 2},
                           .micro_batch = 2});
  }
  std::vector<std::string> names() { return posix_file_system().list(run_.out.path()); }

  const StepReport overflow_{.loss = 1, .loss_scale = 1024};
  const StepReport spike_{.loss = 9, .spike = SpikeFinding{.value = 9}};
  const StepReport bad_{.loss = std::nan("")};
  SmallRun run_;
  RunSetup setup_{run_.job(), solo()};
  RunProgress progress_{setup_};
  Window window_ = progress_.make_loader()->next();
  Reporter reporter_{run_.sink, /*writes=*/true};
};

TEST_F(BlackBoxWriterTest, OneOfEachKind) {
  BlackBoxWriter boxes(posix_file_system(), run_.out.path(), true, progress_, reporter_);
  leave(boxes, 1, overflow_);
  leave(boxes, 2, spike_);
  leave(boxes, 3, overflow_);
  leave(boxes, 4, spike_);
  leave(boxes, 5, bad_);
  leave(boxes, 6, bad_);
  EXPECT_THAT(names(), ElementsAre("blackbox-00000001.safetensors", "blackbox-00000002.safetensors",
                                   "blackbox-00000005.safetensors"));
  EXPECT_EQ(run_.sink.events.size(), 3U);
}

TEST_F(BlackBoxWriterTest, NoneWithoutAFolder) {
  BlackBoxWriter boxes(posix_file_system(), "", true, progress_, reporter_);
  leave(boxes, 1, bad_);
  EXPECT_TRUE(run_.sink.events.empty());
}

TEST_F(BlackBoxWriterTest, OneThatCannotBeWrittenIsTold) {
  HookedFileSystem full(posix_file_system(), [](const std::string& what, const std::string& path) {
    if (what == "write") throw std::system_error(ENOSPC, std::generic_category(), "cannot write " + path);
  });
  BlackBoxWriter boxes(full, run_.out.path(), true, progress_, reporter_);
  leave(boxes, 7, bad_);
  ASSERT_EQ(run_.sink.events.size(), 1U);
  EXPECT_THAT(std::get<BlackBoxFailed>(run_.sink.events[0].event).error,
              ::testing::HasSubstr("cannot write"));
  EXPECT_THAT(names(), ElementsAre());
}

}  // namespace
}  // namespace gradstep::testing
