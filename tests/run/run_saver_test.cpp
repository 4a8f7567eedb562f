// RunSaver: what a save that fails does to the run, and what is said before the first update.
#include "run/run_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "support/hooked_file_system.h"
#include "support/message_of.h"
#include "support/recording_sink.h"
#include "support/saves.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr SaveBytes kBytes{.checkpoint = 1'000'000, .model = 400'000};

class RunSaverTest : public ::testing::Test {
 protected:
  RunSaver saver(const std::string& on_save_error = "stop") {
    policy_.continue_on_error = on_save_error == std::string("continue");
    return {disk_, policy_, max_seconds_, dir_.path(), kBytes, 10};
  }
  void report(RunSaver& saver, bool at_end) {
    saver.report(sink_, at_end);
    saver.throw_failure();
  }
  // One that fails at its first write.
  void fail_a_save(RunSaver& saver, int64_t update) {
    failing_ = true;
    saver.save(state_at(update), {});
    saver.wait();
    failing_ = false;
  }
  ScratchDir dir_;
  SavePolicy policy_;
  double max_seconds_ = 0;
  RecordingSink sink_;
  bool failing_ = false;
  FailingFileSystem inner_ = quick_disk();
  HookedFileSystem disk_{inner_, [this](const std::string& what, const std::string& path) {
                           if (failing_ && what == "write")
                             throw std::system_error(EROFS, std::generic_category(), "cannot write " + path);
                         }};
};

TEST_F(RunSaverTest, StopEndsTheRunAtTheFirstSaveThatFailed) {
  RunSaver saver = this->saver("stop");
  fail_a_save(saver, 100);
  EXPECT_THAT(message_of<CheckpointError>([&] { report(saver, /*at_end=*/false); }),
              AllOf(HasSubstr("step-00000100"), HasSubstr("Read-only file system")));
  ASSERT_THAT(sink_.events, SizeIs(1));
  EXPECT_EQ(sink_.events[0].update, 100);
  EXPECT_THAT(std::get<SaveFailed>(sink_.events[0].event).error, HasSubstr("Read-only file system"));
}

TEST_F(RunSaverTest, ContinueTellsAndGoesOnToTheNextSave) {
  RunSaver saver = this->saver("continue");
  fail_a_save(saver, 100);
  report(saver, /*at_end=*/false);
  EXPECT_THAT(sink_.events, SizeIs(1));
  report(saver, /*at_end=*/false);
  EXPECT_THAT(sink_.events, SizeIs(1));  // each is told once
  saver.save(state_at(120), {});
  report(saver, /*at_end=*/true);
  EXPECT_THAT(sink_.events, SizeIs(1));
  EXPECT_TRUE(is(newest_checkpoint(dir_.path())->state, state_at(120)));
}

// A run must not end with 0 when its last state is nowhere.
TEST_F(RunSaverTest, ALastSaveThatFailedIsAnErrorAlsoWithContinue) {
  for (const std::string policy : {"stop", "continue"}) {
    RunSaver saver = this->saver(policy);
    fail_a_save(saver, 100);
    EXPECT_THAT(message_of<CheckpointError>([&] { report(saver, /*at_end=*/true); }),
                HasSubstr("Read-only file system"));
  }
}

TEST_F(RunSaverTest, ALastSaveThatFailedIsAnErrorAlsoWhereItWasToldBefore) {
  RunSaver saver = this->saver("continue");
  fail_a_save(saver, 100);
  report(saver, /*at_end=*/false);
  EXPECT_THAT(message_of<CheckpointError>([&] { report(saver, /*at_end=*/true); }),
              HasSubstr("Read-only file system"));
  EXPECT_THAT(sink_.events, SizeIs(1));
}

// F11: the run cannot go on from it, whatever the policy.
TEST_F(RunSaverTest, F11_AStateThatIsNotFiniteEndsTheRun) {
  for (const std::string policy : {"stop", "continue"}) {
    RunSaver saver = this->saver(policy);
    TrainState state = state_at(100);
    state.model[1].second[0] = std::nan("");
    saver.save(state, {});
    EXPECT_THAT(message_of<Error>([&] { report(saver, /*at_end=*/true); }),
                HasSubstr("fc1.bias is not finite at update 100"));
    EXPECT_FALSE(newest_checkpoint(dir_.path()));
  }
}

TEST_F(RunSaverTest, WithoutAFolderNothingIsEverSaved) {
  RunSaver saver(disk_, policy_, max_seconds_, "", kBytes, 10);
  EXPECT_FALSE(saver.enabled());
  EXPECT_THAT(saver.check(), IsEmpty());
  saver.note_saved(state_at(1));
  saver.save(state_at(1), {.best = true});
  saver.wait();
  report(saver, /*at_end=*/true);
  EXPECT_THAT(sink_.events, IsEmpty());
  EXPECT_EQ(saver.expected_seconds(), 0);
  EXPECT_EQ(inner_.num_calls(), 0);
}

TEST_F(RunSaverTest, NothingToSayWhereThereIsRoomAndTime) {
  EXPECT_THAT(saver().check(), IsEmpty());
  policy_.grace_seconds = 3600;
  max_seconds_ = 3600;
  RunSaver saver = this->saver();
  EXPECT_THAT(saver.check(), IsEmpty());
  EXPECT_GT(saver.expected_seconds(), 0);
  EXPECT_EQ(posix_file_system().list(dir_.path()).size(), 0U);
}

TEST_F(RunSaverTest, F10_TooLittleRoomIsAnErrorOrAWarning) {
  disk_.num_free_bytes = 1'399'999;
  EXPECT_THROW((void)saver().check(), CheckpointError);
  disk_.num_free_bytes = 1'400'000;
  EXPECT_THAT(saver().check(), ElementsAre(HasSubstr("will need 6.2 MB, 1.4 MB are free")));
}

// No disk takes a save in a nanosecond.
TEST_F(RunSaverTest, AGraceOrALimitShorterThanASaveIsAWarning) {
  policy_.grace_seconds = 1e-9;
  max_seconds_ = 1e-9;
  EXPECT_THAT(
      saver().check(),
      ElementsAre(AllOf(HasSubstr("`grace` "), HasSubstr("a save of 1.0 MB takes about"),
                        HasSubstr("ask the scheduler for more"), Not(HasSubstr("\n"))),
                  AllOf(HasSubstr("`max_time` is too short"), HasSubstr("a save of 1.0 MB takes about"),
                        HasSubstr("allow more"), Not(HasSubstr("\n")))));
}

TEST_F(RunSaverTest, WhatASaveTakesIsMeasuredOnceThereWasOne) {
  policy_.grace_seconds = 3600;
  RunSaver saver = this->saver();
  EXPECT_THAT(saver.check(), IsEmpty());
  const double estimated = saver.expected_seconds();
  saver.save(state_at(100), {});
  saver.wait();
  EXPECT_GT(saver.expected_seconds(), 0);
  EXPECT_NE(saver.expected_seconds(), estimated);
}

}  // namespace
}  // namespace gradstep::testing
