// --resume PATH takes for a checkpoint what ckpt and eval take for one.
#include "app/resume_flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "gradstep/base/error.h"
#include "support/full_state.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

TEST(ResumeFlag, ACopyUnderAnotherNameIsACheckpoint) {
  const ScratchDir dir;
  const std::string run = dir.file("run");
  write_checkpoint(posix_file_system(), run, full_state(60));
  const std::string copy = dir.file("copy");
  std::filesystem::copy(checkpoints_dir(run) + "/" + checkpoint_name(60), copy);
  for (const std::string& path : {copy, copy + "/"}) {
    EXPECT_EQ(resume_folder(path, ""), "") << "the copy is no output folder";
    EXPECT_EQ(checkpoint_to_resume(path, dir.file("other"))->state.engine.counters.updates, 60);
  }
  EXPECT_EQ(resume_folder(checkpoints_dir(run) + "/" + checkpoint_name(60), ""), run);
  EXPECT_EQ(resume_folder(run, ""), run);
}

// The run's newest one is not taken in its place.
TEST(ResumeFlag, ACheckpointThatIsMissingIsAnError) {
  const ScratchDir dir;
  write_checkpoint(posix_file_system(), dir.file("run"), full_state(60));
  const std::string missing = checkpoints_dir(dir.file("run")) + "/" + checkpoint_name(50);
  EXPECT_THROW((void)checkpoint_to_resume(missing, dir.file("other")), CheckpointError);
}

}  // namespace
}  // namespace gradstep::testing
