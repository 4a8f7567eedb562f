// Checkpointer under faults: each call of a save failing, or being the last one before a kill.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>

#include "gradstep/checkpoint/checkpointer.h"
#include "gradstep/checkpoint/model_file.h"
#include "support/hooked_file_system.h"
#include "support/saves.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr SaveRequest kAllExports{.best = true, .export_model = true};

// Two saves with exports, keep 1; the second takes a new place, or that of the first.
class CheckpointerFaults : public ::testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static TrainState second() { return GetParam() ? evaluated(state_at(100)) : state_at(120); }
  [[nodiscard]] static CheckpointerOptions options(const ScratchDir& dir) {
    return {.output_dir = dir.path(), .keep = 1};
  }
  static void expect_whole_exports(const ScratchDir& dir, int64_t call) {
    for (const std::string name : {"best", "best-ema", "model", "model-ema"}) {
      const std::string path = dir.file(name + ".safetensors");
      const bool averaged = name.ends_with("-ema");
      const auto is_of = [&](const TrainState& state) {
        const NamedTensors& expected = averaged ? state.ema : state.model;
        return same_bytes(tensors_of(path, expected), copies(expected));
      };
      EXPECT_TRUE(is_of(state_at(100)) || is_of(second())) << name << " at call " << call;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Save, CheckpointerFaults, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "SamePlace" : "NewPlace"; });

TEST_P(CheckpointerFaults, F4_AfterAFailureOfAnyCallTheOlderIsIntactAndTheNextSaveWorks) {
  int64_t num_errors = 0;
  for (int64_t failing = 0;; ++failing) {
    const ScratchDir dir;
    dir.write("metrics.jsonl", "{}\n");
    FailingFileSystem disk = quick_disk();
    Checkpointer checkpointer(disk, options(dir));
    ASSERT_EQ(save_and_wait(checkpointer, state_at(100), kAllExports).error, "");
    const int64_t num_before = disk.num_calls();
    disk.fail_call(failing);
    const std::string error = save_and_wait(checkpointer, second(), kAllExports).error;
    if (disk.num_calls() - num_before <= failing) {
      EXPECT_EQ(error, "");
      break;
    }
    const std::string call = disk.calls()[static_cast<size_t>(num_before + failing)];
    const auto found = newest_checkpoint(dir.path());
    ASSERT_TRUE(found) << call;
    EXPECT_THAT(found->broken, IsEmpty()) << call;
    if (error.empty()) {
      // Retention moves an old one aside before it removes it.
      EXPECT_THAT(
          call, ::testing::AnyOf(HasSubstr("remove "), HasSubstr("rename " + dir.file("checkpoints/.tmp-"))));
      EXPECT_TRUE(is(found->state, second())) << call;
    } else {
      ++num_errors;
      EXPECT_THAT(error, ::testing::AllOf(HasSubstr("No space left"), Not(HasSubstr("\n"))));
      const bool older = is(read_checkpoint(dir.file("checkpoints/step-00000100")), state_at(100));
      // The sync after the rename fails while the new one is visible already.
      const bool replaced = GetParam() && call.starts_with("sync folder") && is(found->state, second());
      EXPECT_TRUE(older || replaced) << call;
    }
    expect_whole_exports(dir, failing);
    ASSERT_EQ(save_and_wait(checkpointer, state_at(140), kAllExports).error, "") << call;
    EXPECT_TRUE(is(newest_checkpoint(dir.path())->state, state_at(140))) << call;
    for (const std::string& name : posix_file_system().list(dir.path())) {
      EXPECT_FALSE(name.starts_with(".")) << name << " after " << call;
    }
    EXPECT_EQ(list_checkpoints(dir.path()), std::vector<int64_t>{140}) << call;
  }
  EXPECT_GT(num_errors, 50);
}

// F5: killed at each call in turn, the next run finds the old one or the new one, and goes on.
TEST_P(CheckpointerFaults, F5_KilledAtAnyCallTheNextRunGoesOn) {
  for (int64_t cut = 0;; ++cut) {
    const ScratchDir dir;
    dir.write("metrics.jsonl", "{}\n");
    bool done = false;
    {
      FailingFileSystem disk = quick_disk();
      Checkpointer checkpointer(disk, options(dir));
      ASSERT_EQ(save_and_wait(checkpointer, state_at(100), kAllExports).error, "");
      const int64_t num_before = disk.num_calls();
      disk.cut_at_call(cut);
      done = save_and_wait(checkpointer, second(), kAllExports).error.empty() &&
             disk.num_calls() - num_before <= cut;
    }
    FailingFileSystem disk = quick_disk();
    Checkpointer checkpointer(disk, options(dir));
    const auto found = newest_checkpoint(dir.path());
    ASSERT_TRUE(found) << cut;
    EXPECT_THAT(found->broken, IsEmpty()) << cut;
    EXPECT_TRUE(is(found->state, second()) || (!done && is(found->state, state_at(100)))) << cut;
    expect_whole_exports(dir, cut);
    for (const std::string& name : posix_file_system().list(dir.path())) {
      EXPECT_FALSE(name.starts_with(".")) << name << " after " << cut;
    }
    for (const std::string& name : posix_file_system().list(dir.file("checkpoints"))) {
      EXPECT_TRUE(parse_checkpoint_name(name)) << name << " after " << cut;
    }
    checkpointer.note_saved(found->state);
    ASSERT_EQ(save_and_wait(checkpointer, state_at(140)).error, "") << cut;
    EXPECT_EQ(list_checkpoints(dir.path()), std::vector<int64_t>{140}) << cut;
    if (done) break;
  }
}

// F10 in the midst of a run: said with both numbers before anything is written, and the next save finds room.
TEST(CheckpointerFault, F10_NoRoomIsFoundBeforeAnythingIsWritten) {
  const ScratchDir dir;
  FailingFileSystem inner = quick_disk();
  HookedFileSystem disk(inner, [](const auto&, const auto&) {});
  Checkpointer checkpointer(disk, {.output_dir = dir.path()});
  disk.num_free_bytes = 1234;
  EXPECT_THAT(save_and_wait(checkpointer, state_at(100), kAllExports).error,
              ::testing::AllOf(HasSubstr(dir.path() + ": a checkpoint needs "), HasSubstr("1.2 kB are free"),
                               Not(HasSubstr("\n"))));
  EXPECT_EQ(dir.num_entries(), 0);
  EXPECT_FALSE(checkpointer.save_seconds());
  disk.num_free_bytes.reset();
  EXPECT_EQ(save_and_wait(checkpointer, state_at(100), kAllExports).error, "");
}

}  // namespace
}  // namespace gradstep::testing
