// Atomic writes: whatever call fails, and whenever the power goes, the file is the old one or the new one,
// and nothing else is left.
#include "io/atomic_write.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "support/memory_file_system.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MemoryFileSystem;
using testing::message_of;
using testing::ScratchDir;

// The calls of one write: create, two writes, sync, close, rename, sync of the folder.
constexpr int64_t kNumCalls = 7;

void write_new(FileSystem& file_system) { atomic_write(file_system, "folder/file", {"new ", "content"}); }

TEST(AtomicWrite, WritesAllPiecesDurably) {
  MemoryFileSystem disk;
  disk.put("folder/file", "old");
  write_new(disk);
  EXPECT_EQ(disk.num_calls(), kNumCalls);
  disk.cut_power();
  EXPECT_EQ(disk.content("folder/file"), "new content");
  EXPECT_EQ(disk.num_files(), 1U);
}

TEST(AtomicWrite, AfterAFailureOfAnyCallTheOldFileIsIntact) {
  for (int64_t failing = 0; failing < kNumCalls; ++failing) {
    MemoryFileSystem disk;
    disk.put("folder/file", "old");
    disk.fail_call(failing);
    EXPECT_THROW(write_new(disk), std::system_error) << failing;
    // The sync of the folder comes after the rename.
    EXPECT_EQ(disk.content("folder/file"), failing == kNumCalls - 1 ? "new content" : "old") << failing;
    EXPECT_EQ(disk.num_files(), 1U) << failing;
    EXPECT_TRUE(disk.all_closed()) << failing;
    disk.cut_power();
    EXPECT_EQ(disk.content("folder/file"), "old") << failing;
    write_new(disk);
    EXPECT_EQ(disk.content("folder/file"), "new content") << failing;
  }
}

TEST(AtomicWrite, ANewFileThatFailsIsNotThere) {
  for (int64_t failing = 0; failing < kNumCalls - 1; ++failing) {
    MemoryFileSystem disk;
    disk.fail_call(failing);
    EXPECT_THROW(write_new(disk), std::system_error);
    EXPECT_EQ(disk.num_files(), 0U) << failing;
  }
}

TEST(PosixFileSystem, AtomicWriteOnTheDisk) {
  const ScratchDir dir;
  dir.write("file", "old");
  const std::string large(3'000'000, 'x');
  atomic_write(posix_file_system(), dir.file("file"), {large, "", "end"});
  EXPECT_EQ(dir.read("file"), large + "end");
  EXPECT_EQ(dir.num_entries(), 1);
}

TEST(PosixFileSystem, NewFilesObeyTheUmask) {
  const ScratchDir dir;
  const mode_t before = ::umask(027);
  atomic_write(posix_file_system(), dir.file("file"), {"x"});
  ::umask(before);
  struct stat status{};
  ASSERT_EQ(::stat(dir.file("file").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0640U);
}

// A limit on the size of files stands for a full disk: write(2) first writes less than asked, then fails.
TEST(PosixFileSystem, AFullDiskLeavesTheOldFile) {
  const ScratchDir dir;
  dir.write("file", "old");
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = message_of<std::system_error>(
      [&] { atomic_write(posix_file_system(), dir.file("file"), {std::string(1500, 'x')}); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("cannot write " + dir.path()));
  EXPECT_THAT(message, HasSubstr("File too large"));
  EXPECT_EQ(dir.read("file"), "old");
  EXPECT_EQ(dir.num_entries(), 1);
}

TEST(PosixFileSystem, ErrorsNameThePath) {
  FileSystem& disk = posix_file_system();
  EXPECT_THAT(message_of<std::system_error>([&] { atomic_write(disk, "/no/such/folder/file", {"x"}); }),
              HasSubstr("/no/such/folder/"));
  EXPECT_THAT(message_of<std::system_error>([&] { disk.rename("/no/such/a", "/no/such/b"); }),
              HasSubstr("/no/such/b"));
  EXPECT_THAT(message_of<std::system_error>([&] { disk.sync_dir("/no/such"); }), HasSubstr("/no/such"));
  EXPECT_THAT(message_of<std::system_error>([&] { (void)disk.free_bytes("/no/such"); }),
              HasSubstr("/no/such"));
  EXPECT_THAT(message_of<std::system_error>([&] { disk.make_dirs("/dev/null/x"); }),
              HasSubstr("/dev/null/x"));
  EXPECT_THAT(message_of<std::system_error>([&] { disk.write_all(-1, "x", "name"); }), HasSubstr("name"));
  EXPECT_THAT(message_of<std::system_error>([&] { (void)disk.list("/dev/null"); }), HasSubstr("/dev/null"));
}

TEST(PosixFileSystem, FoldersAreMadeListedAndRemoved) {
  const ScratchDir dir;
  FileSystem& disk = posix_file_system();
  disk.make_dirs(dir.file("a/b"));
  disk.make_dirs(dir.file("a/b"));
  dir.write("a/z", "");
  EXPECT_THAT(disk.list(dir.file("a")), ElementsAre("b", "z"));
  EXPECT_THAT(disk.list(dir.file("none")), ElementsAre());
  disk.sync_dir(dir.file("a"));
  EXPECT_GT(disk.free_bytes(dir.path()), 0U);
  disk.remove_all(dir.file("a"));
  EXPECT_EQ(dir.num_entries(), 0);
  disk.remove_all(dir.file("a"));
}

}  // namespace
}  // namespace gradstep
