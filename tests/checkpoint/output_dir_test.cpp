// no torch
// OutputDir: made when absent, locked while in use, never taken from somebody else, and gone when nothing
// came of it.
#include "gradstep/checkpoint/output_dir.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <thread>

#include "gradstep/base/error.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

std::string refusal(const std::string& path) {
  const std::string message = message_of<ConfigError>([&] { OutputDir dir(path); });
  EXPECT_THAT(message, AllOf(HasSubstr("`output_dir` " + path), Not(HasSubstr("\n"))));
  return message;
}

TEST(OutputDir, IsMadeWithItsParentsAndRemovedWhenNothingWasWritten) {
  const ScratchDir scratch;
  for (const std::string name : {"a", "b/c/d", "with space", "slash/"}) {
    {
      const OutputDir dir(scratch.file(name));
      EXPECT_TRUE(fs::is_directory(scratch.file(name)));
      EXPECT_EQ(dir.path(), scratch.file(name));
      EXPECT_EQ(dir.file("x"), scratch.file(name) + "/x");
    }
    EXPECT_FALSE(fs::exists(scratch.file(name))) << name;
  }
}

TEST(OutputDir, StaysWithWhatWasWritten) {
  const ScratchDir scratch;
  {
    const OutputDir dir(scratch.file("run"));
    scratch.write("run/metrics.jsonl", "{}");
  }
  EXPECT_EQ(scratch.read("run/metrics.jsonl"), "{}");
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.file("run")), {}), 1);  // the lock is gone
}

TEST(OutputDir, WhatAKillLeftOfTheFirstFileIsNotForeign) {
  const ScratchDir scratch;
  fs::create_directory(scratch.file("killed"));
  scratch.write("killed/.config.toml.tmp-123-0", "# half");
  scratch.write("killed/.rate.tmp-123-0", "");
  {
    const OutputDir dir(scratch.file("killed"), OutputDir::Use::kGoOn);
  }
  {
    const OutputDir dir(scratch.file("killed"));
  }
}

TEST(OutputDir, AnEmptyFolderOfTheUserIsUsedAndStays) {
  const ScratchDir scratch;
  fs::create_directory(scratch.file("mine"));
  {
    const OutputDir dir(scratch.file("mine"));
  }
  EXPECT_TRUE(fs::is_empty(scratch.file("mine")));
}

TEST(OutputDir, ARunIsNotOverwritten) {
  for (const char* name : {"metrics.jsonl", "config.toml", "model.safetensors", "checkpoints"}) {
    const ScratchDir scratch;
    scratch.write(name, "old");
    EXPECT_THAT(refusal(scratch.path()), HasSubstr("holds a run already"));
    EXPECT_EQ(scratch.read(name), "old");
    EXPECT_EQ(scratch.num_entries(), 1);
  }
}

TEST(OutputDir, ARunMayBeGoneOnWith) {
  for (const char* name : {"metrics.jsonl", "config.toml", "model.safetensors", "checkpoints"}) {
    const ScratchDir scratch;
    scratch.write(name, "old");
    EXPECT_NO_THROW(OutputDir(scratch.path(), OutputDir::Use::kGoOn));
    EXPECT_EQ(scratch.read(name), "old");
  }
  const ScratchDir empty;  // nothing to go on with is no fault
  EXPECT_NO_THROW(OutputDir(empty.file("new"), OutputDir::Use::kGoOn));
}

TEST(OutputDir, FilesOfSomebodyElseAreLeftAlone) {
  for (const char* name : {"thesis.txt", ".lock", ".hidden", "best.txt"}) {
    const ScratchDir scratch;
    scratch.write(name, "precious");
    EXPECT_NO_THROW(OutputDir(scratch.path())) << name;
    EXPECT_EQ(scratch.read(name), "precious");
    EXPECT_EQ(scratch.num_entries(), 1);
  }
}

TEST(OutputDir, LeftoversOfAStartThatWasKilledAreNobodyElses) {
  const ScratchDir scratch;
  for (const char* name : {".config.toml.tmp-4711-0", ".rate.tmp-4711", ".gradstep.lock"})
    scratch.write(name, "");
  EXPECT_NO_THROW(OutputDir(scratch.path(), OutputDir::Use::kGoOn));
  EXPECT_NO_THROW(OutputDir(scratch.path(), OutputDir::Use::kNew));
}

TEST(OutputDir, ASecondUserIsToldWhoHasIt) {
  const ScratchDir scratch;
  const OutputDir dir(scratch.file("run"));
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  const std::string owner = "in use by pid " + std::to_string(getpid()) + " on " + host;
  EXPECT_THAT(refusal(dir.path()), HasSubstr(owner));
  std::thread([&] { EXPECT_THAT(refusal(dir.path()), HasSubstr(owner)); }).join();
  scratch.write("run/metrics.jsonl", "{}");
  EXPECT_THAT(refusal(dir.path()), HasSubstr(owner));  // still the reason, also when it holds a run meanwhile
}

// The child holds the folder until it is killed; nothing is cleaned up then, and the next one takes over.
TEST(OutputDir, AnotherProcessKeepsItUntilItDies) {
  const ScratchDir scratch;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::optional<OutputDir> dir;
    char ok = 'y';
    try {
      dir.emplace(scratch.file("run"));
    } catch (...) {
      ok = 'n';
    }
    if (write(ready[1], &ok, 1) == 1) pause();
    _exit(1);
  }
  char ok = 0;
  ASSERT_EQ(read(ready[0], &ok, 1), 1);
  EXPECT_EQ(ok, 'y');
  EXPECT_THAT(refusal(scratch.file("run")), HasSubstr("in use by pid " + std::to_string(child) + " on "));
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(fs::is_empty(scratch.file("run")));  // the stale lock file
  {
    const OutputDir dir(scratch.file("run"));
  }
  EXPECT_TRUE(fs::is_empty(scratch.file("run")));
  close(ready[0]);
  close(ready[1]);
}

// Many threads at once: one has it at any time, and a folder that disappears under a waiting one does no
// harm.
TEST(OutputDir, OneAtATimeUnderARush) {
  const ScratchDir scratch;
  std::atomic<int> inside{0};
  std::atomic<int> entered{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        try {
          const OutputDir dir(scratch.file("run"));
          EXPECT_EQ(++inside, 1);
          ++entered;
          --inside;
        } catch (const ConfigError&) {
          // Refused: that is fine.
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(entered, 0);
}

TEST(OutputDir, WhatCannotBeAFolderIsRefused) {
  const ScratchDir scratch;
  const std::string file = scratch.write("file", "x");
  EXPECT_THAT(refusal(file), HasSubstr("cannot be created"));
  EXPECT_THAT(refusal(file + "/below"), HasSubstr("cannot be created"));
  EXPECT_THAT(refusal("/proc/no such folder"), HasSubstr("cannot be created"));
  EXPECT_THAT(refusal(scratch.file(std::string(300, 'n'))), HasSubstr("cannot be created"));
  EXPECT_EQ(scratch.read("file"), "x");
}

// The lock file is written into.
TEST(OutputDir, ALinkInPlaceOfTheLockIsNotFollowed) {
  const ScratchDir scratch;
  const std::string precious = scratch.write("precious", "x");
  fs::create_directory(scratch.file("run"));
  fs::create_symlink(precious, scratch.file("run/.gradstep.lock"));
  EXPECT_THAT(refusal(scratch.file("run")), HasSubstr("cannot write there"));
  EXPECT_EQ(scratch.read("precious"), "x");
}

TEST(OutputDir, AFolderWithoutWriteAccessIsRefused) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const ScratchDir scratch;
  fs::permissions(scratch.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(refusal(scratch.path()), HasSubstr("cannot write there"));
  fs::permissions(scratch.path(), fs::perms::owner_all);
}

TEST(DefaultOutputDir, NamesDatasetModelAndTime) {
  EXPECT_THAT(default_output_dir("mnist", "mlp"), MatchesRegex("runs/mnist-mlp-2[0-9]{7}-[0-9]{6}"));
  // One recipe is both.
  EXPECT_THAT(default_output_dir("bytes", "bytes"), MatchesRegex("runs/bytes-2[0-9]{7}-[0-9]{6}"));
}

}  // namespace
}  // namespace gradstep::testing
