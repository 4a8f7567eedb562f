// look_at_lock: tells what holds a folder, and keeps nobody out.
// no torch
#include "checkpoint/lock_state.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/machine.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/output_dir.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

TEST(LockState, FollowsTheOwner) {
  const ScratchDir dir;
  EXPECT_EQ(look_at_lock(dir.path()).state, LockState::kFree);
  {
    const OutputDir held(dir.path(), OutputDir::Use::kGoOn);
    const FolderLock lock = look_at_lock(dir.path());
    EXPECT_EQ(lock.state, LockState::kHeld);
    EXPECT_EQ(lock.owner, "pid " + std::to_string(getpid()) + " on " + host_name());
  }
  EXPECT_EQ(look_at_lock(dir.path()).state, LockState::kFree);
  EXPECT_EQ(look_at_lock(dir.file("absent")).state, LockState::kFree);
}

TEST(LockState, WhatADeadProcessLeftHoldsNothing) {
  const ScratchDir dir;
  for (const std::string& text : {"pid 2147483647 on " + host_name() + "\n1-2\n",
                                  "pid " + std::to_string(getpid()) + " on " + host_name() + "\n1-2\n",
                                  std::string("pid 12 on another-machine\n1-2\n"), std::string()}) {
    dir.write(".gradstep.lock", text);
    EXPECT_EQ(look_at_lock(dir.path()).state, LockState::kLeftOver) << text;
  }
}

// A process of another machine or container is in no list of ours, but its lock is felt.
TEST(LockState, ALockWhoseOwnerIsNotKnownIsFelt) {
  const ScratchDir dir;
  const std::string path = dir.write(".gradstep.lock", "pid 2147483647 on another-machine\n1-2\n");
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
  EXPECT_EQ(look_at_lock(dir.path()).state, LockState::kHeld);
  close(fd);
  EXPECT_EQ(look_at_lock(dir.path()).state, LockState::kLeftOver);
}

// Left over from a process of this machine: the lock is never touched, so a start is never refused.
TEST(LockState, KeepsNoStartOut) {
  const ScratchDir dir;
  std::atomic<bool> done = false;
  std::thread looker([&] {
    while (!done) (void)look_at_lock(dir.path());
  });
  for (int i = 0; i < 300; ++i) {
    dir.write(".gradstep.lock", "pid 2147483647 on " + host_name() + "\n1-2\n");
    EXPECT_NO_THROW(OutputDir(dir.path(), OutputDir::Use::kGoOn));
  }
  done = true;
  looker.join();
}

TEST(LockState, WhatNoRunCanLockIsRefused) {
  const ScratchDir dir;
  const auto refusal = [&] { return message_of<CheckpointError>([&] { (void)look_at_lock(dir.path()); }); };
  ASSERT_EQ(mkfifo(dir.file(".gradstep.lock").c_str(), 0600), 0);
  EXPECT_THAT(refusal(), HasSubstr("no plain file"));
  std::filesystem::remove(dir.file(".gradstep.lock"));
  std::filesystem::create_symlink(dir.file("elsewhere"), dir.file(".gradstep.lock"));
  EXPECT_THAT(refusal(), HasSubstr("no plain file"));
}

}  // namespace
}  // namespace gradstep::testing
