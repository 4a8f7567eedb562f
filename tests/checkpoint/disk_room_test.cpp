// Room on the disk: what saves will take, said before update 1 with both numbers (case F10), and the disk's
// speed.
#include "checkpoint/disk_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <limits>

#include "gradstep/base/error.h"
#include "support/hooked_file_system.h"
#include "support/message_of.h"
#include "support/saves.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
constexpr SaveBytes kBytes{.checkpoint = 1'000'000, .model = 400'000};
constexpr int64_t kManySaves = 1000;

class DiskRoom : public ::testing::Test {
 protected:
  std::string warning(uint64_t free, int64_t keep = 3, int64_t num_saves = kManySaves) {
    disk_.num_free_bytes = free;
    return check_room(disk_, dir_.path(), kBytes, keep, num_saves);
  }
  ScratchDir dir_;
  HookedFileSystem disk_{posix_file_system(), [](const auto&, const auto&) {}};
};

TEST(SaveBytesTest, CoversWhatIsWritten) {
  const ScratchDir dir;
  FailingFileSystem disk = quick_disk();
  Checkpointer checkpointer(disk, {.output_dir = dir.path()});
  const SaveRequest both{.best = true, .export_model = true};
  for (const bool averaged : {true, false}) {
    TrainState state = state_at(averaged ? 1 : 2);
    state.model[0].second = state.ema[0].second = numbers({100, 300}, 1);  // 120 kB
    if (!averaged) state.ema.clear();
    const SaveBytes bytes = save_bytes(state);
    const SaveOutcome outcome = save_and_wait(checkpointer, state, both);
    EXPECT_EQ(outcome.error, "");
    EXPECT_LE(outcome.bytes, bytes_of_save(bytes, both));
    // Not many times too much either.
    EXPECT_GE(outcome.bytes + 100'000, bytes_of_save(bytes, both));
    EXPECT_EQ(save_bytes(TrainState{}).checkpoint, checkpoint_bytes(TrainState{}));
  }
}

TEST(SaveBytesTest, OfOneSaveAndOfTheRun) {
  EXPECT_EQ(bytes_of_save(kBytes, {}), 1'000'000U);
  EXPECT_EQ(bytes_of_save(kBytes, {.best = true}), 1'400'000U);
  EXPECT_EQ(bytes_of_save(kBytes, {.best = true, .export_model = true}), 1'800'000U);
  // Three newest, the best, one in the making; best, model and one in the making.
  const SaveBytes three = bytes_of_run(kBytes, 3, kManySaves);
  EXPECT_EQ(three.checkpoint, 5'000'000U);
  EXPECT_EQ(three.model, 1'200'000U);
  EXPECT_EQ(bytes_of_run(kBytes, 0, 10).checkpoint, 10'000'000U);
  EXPECT_EQ(bytes_of_run(kBytes, 0, 0).checkpoint, 1'000'000U);
  EXPECT_EQ(bytes_of_run(kBytes, 0, std::numeric_limits<int64_t>::max()).checkpoint, kMost);
  EXPECT_EQ(bytes_of_run({.checkpoint = kMost, .model = kMost}, 1, 1).model, kMost);
  EXPECT_EQ(bytes_of_save({.checkpoint = kMost, .model = 1}, {.best = true}), kMost);
}

TEST_F(DiskRoom, F10_NoRoomForOneIsAnErrorWithBothNumbers) {
  for (const uint64_t free : {uint64_t{0}, uint64_t{1'399'999}}) {
    EXPECT_THAT(
        message_of<CheckpointError>([&] { (void)warning(free); }),
        AllOf(HasSubstr(dir_.path() + ": a checkpoint needs 1.4 MB, " + room_text(free) + " are free"),
              HasSubstr("make room"), Not(HasSubstr("\n"))));
  }
}

TEST_F(DiskRoom, F10_RoomForOneButNotForAllIsAWarningWithBothNumbers) {
  for (const uint64_t free : {uint64_t{1'400'000}, uint64_t{6'199'999}}) {
    EXPECT_THAT(warning(free), AllOf(HasSubstr(dir_.path()), HasSubstr("need 6.2 MB, " + room_text(free)),
                                     HasSubstr("`keep_checkpoints`"), Not(HasSubstr("\n"))));
  }
  EXPECT_EQ(warning(6'200'000), "");
  EXPECT_EQ(warning(kMost), "");
}

TEST_F(DiskRoom, F10_KeepZeroCountsTheSavesOfTheRun) {
  EXPECT_THAT(warning(5'000'000, 0, 10), HasSubstr("need 11.2 MB, 5.0 MB are free"));
  EXPECT_EQ(warning(5'000'000, 0, 2), "");
}

TEST_F(DiskRoom, F10_CheckpointsThatAreThereCount) {
  for (const std::string name : {"step-00000001", "step-00000002", "step-00000003"})
    std::filesystem::create_directories(dir_.file("checkpoints/" + name));
  EXPECT_EQ(warning(3'200'000), "");
  EXPECT_THAT(warning(3'199'999), HasSubstr("need 3.2 MB"));
  // The next one still needs its place.
  EXPECT_EQ(warning(2'200'000, 0, 2), "");
  EXPECT_THAT(warning(2'199'999, 0, 2), HasSubstr("need 2.2 MB"));
  for (const char* name : {"best.safetensors", "model.safetensors"}) dir_.write(name, "");
  EXPECT_EQ(warning(1'400'000, 0, 2), "");
  EXPECT_THROW((void)warning(1'399'999, 0, 2), CheckpointError);
}

// A link to a larger disk is a usual thing: each disk is asked for what will lie on it.
TEST_F(DiskRoom, CheckpointsMayHaveADiskOfTheirOwn) {
  const ScratchDir other("/dev/shm");
  std::vector<std::string> asked;
  HookedFileSystem disk(posix_file_system(), [&](const std::string& what, const std::string& path) {
    if (what == "ask") asked.push_back(path);
  });
  require_room(disk, dir_.path(), kBytes, {.best = true});
  EXPECT_THAT(asked, ElementsAre(dir_.path()));
  std::filesystem::create_directory(dir_.file("checkpoints"));
  EXPECT_EQ(place_of_checkpoints(dir_.path()), dir_.path());
  std::filesystem::remove(dir_.file("checkpoints"));
  std::filesystem::create_directory_symlink(other.path(), dir_.file("checkpoints"));
  ASSERT_EQ(place_of_checkpoints(dir_.path()), dir_.file("checkpoints")) << "/dev/shm is no disk of its own";
  asked.clear();
  require_room(disk, dir_.path(), kBytes, {.best = true});
  EXPECT_THAT(asked, ElementsAre(dir_.file("checkpoints"), dir_.path()));
  disk.num_free_bytes = 999'999;
  EXPECT_THAT(message_of<CheckpointError>([&] { require_room(disk, dir_.path(), kBytes, {}); }),
              HasSubstr(dir_.file("checkpoints") + ": a checkpoint needs 1.0 MB"));
  disk.num_free_bytes = 4'999'999;
  EXPECT_THAT(check_room(disk, dir_.path(), kBytes, 3, kManySaves),
              HasSubstr(dir_.file("checkpoints") + ": the checkpoints of this run will need 5.0 MB"));
  disk.num_free_bytes = 5'000'000;
  EXPECT_EQ(check_room(disk, dir_.path(), kBytes, 3, kManySaves), "");
}

TEST_F(DiskRoom, AQuestionThatFailsNamesTheFolder) {
  FailingFileSystem disk = quick_disk();
  disk.fail_call(0, EACCES);
  EXPECT_THAT(message_of<CheckpointError>([&] { require_room(disk, dir_.path(), kBytes, {}); }),
              AllOf(HasSubstr(dir_.path()), HasSubstr("Permission denied"), HasSubstr("check the disk")));
}

TEST_F(DiskRoom, TheRateLeavesNothingBehind) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1000}, uint64_t{50'000'000}}) {
    EXPECT_GT(measure_write_rate(posix_file_system(), dir_.path(), bytes), 0);
    EXPECT_EQ(dir_.num_entries(), 0);
  }
}

TEST_F(DiskRoom, TheRateThatFailsLeavesNothingBehindEither) {
  for (int64_t failing = 0; failing < 3; ++failing) {  // create, write, sync
    FailingFileSystem disk = quick_disk();
    disk.fail_call(failing);
    EXPECT_THAT(message_of<CheckpointError>([&] { (void)measure_write_rate(disk, dir_.path(), 1000); }),
                AllOf(HasSubstr(dir_.path()), HasSubstr("No space left"), Not(HasSubstr("\n"))));
    EXPECT_EQ(dir_.num_entries(), 0);
  }
}

TEST(RoomText, ReadsWell) {
  EXPECT_EQ(room_text(1'600'000), "1.6 MB");
  EXPECT_EQ(room_text(kMost), room_text(kMost / 2));
}

}  // namespace
}  // namespace gradstep::testing
