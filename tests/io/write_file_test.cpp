// write_file: what is on the disk is what was hashed, and no descriptor is left open.
#include "io/write_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <system_error>

#include "io/hash.h"
#include "support/failing_file_system.h"
#include "support/memory_file_system.h"
#include "support/scratch_dir.h"

namespace gradstep {
namespace {

using testing::MemoryFileSystem;
using testing::ScratchDir;

TEST(WriteFile, WritesAndHashesAllPieces) {
  const ScratchDir dir;
  const std::string large(2'500'001, 'x');
  const FileDigest digest = write_file(posix_file_system(), dir.file("f"), {"head", "", large, "tail"});
  EXPECT_EQ(dir.read("f"), "head" + large + "tail");
  EXPECT_EQ(digest.bytes, large.size() + 8);
  EXPECT_EQ(digest.xxh3, xxh3_file(dir.file("f")));
}

TEST(WriteFile, AfterAFailureOfAnyCallNothingIsOpen) {
  for (int64_t failing = 0; failing < 5; ++failing) {
    MemoryFileSystem disk;
    disk.fail_call(failing);
    EXPECT_THROW((void)write_file(disk, "f", {"one", "two"}), std::system_error) << failing;
    EXPECT_TRUE(disk.all_closed()) << failing;
  }
}

TEST(WriteFile, AFolderIsDurableOnceItsParentIsSynced) {
  MemoryFileSystem disk;
  (void)write_file(disk, "run/new/f", {"x"});
  disk.sync_dir("run/new");
  disk.rename("run/new", "run/named");
  MemoryFileSystem cut = disk;
  cut.cut_power();
  EXPECT_TRUE(cut.has("run/new/f"));
  disk.sync_dir("run");
  disk.cut_power();
  EXPECT_EQ(disk.content("run/named/f"), "x");
  EXPECT_EQ(disk.num_files(), 1U);
}

TEST(PosixFileSystem, AFileOfSomebodyElseIsSynced) {
  const ScratchDir dir;
  posix_file_system().sync_file(dir.write("rows", "1"));
  EXPECT_THROW(posix_file_system().sync_file(dir.file("none")), std::system_error);
  testing::FailingFileSystem disk(posix_file_system());
  disk.fail_call(0);
  EXPECT_THROW(disk.sync_file(dir.file("rows")), std::system_error);
}

}  // namespace
}  // namespace gradstep
