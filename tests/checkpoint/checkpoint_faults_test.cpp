// Checkpoints under faults: each call of a save failing or being the last one, each byte damaged; the newest
// whole one is found each time, and what is wrong with the others is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "checkpoint/checkpoint_files.h"
#include "checkpoint/manifest.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "io/hash.h"
#include "support/memory_file_system.h"
#include "support/message_of.h"
#include "support/saves.h"
#include "support/scratch_dir.h"

namespace gradstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// The files of a disk in memory, put into a real folder.
void dump(const MemoryFileSystem& disk, const std::string& prefix, const ScratchDir& dir) {
  for (const auto& [path, content] : disk.files()) {
    const fs::path to = dir.path() + path.substr(prefix.size());
    fs::create_directories(to.parent_path());
    std::ofstream(to, std::ios::binary) << content;
  }
}

void save(const std::string& output_dir, const TrainState& state) {
  FailingFileSystem disk = quick_disk();
  write_checkpoint(disk, output_dir, state);
}

// What a save finds: the checkpoint before, and perhaps one of its own name.
struct Before {
  TrainState old = full_state(100, 0.25);
  TrainState same_name = full_state(120, 0.5);
  TrainState saved = full_state(120, 0.75);
  bool replaces = false;

  void write_to(FileSystem& disk, const std::string& output_dir) const {
    write_checkpoint(disk, output_dir, old);
    if (replaces) write_checkpoint(disk, output_dir, same_name);
  }
  [[nodiscard]] const TrainState& newest() const { return replaces ? same_name : old; }
};

class SaveFaults : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Save, SaveFaults, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "Replacing" : "New"; });

// F4, F7: one call fails. The save fails with one line, or it is there; what was there before is intact, and
// the next save works.
TEST_P(SaveFaults, F4_AfterAFailureOfAnyCallTheNewestIsWhole) {
  const Before before{.replaces = GetParam()};
  int64_t num_failures = 0;
  for (int64_t failing = 0;; ++failing) {
    const ScratchDir dir;
    FailingFileSystem disk = quick_disk();
    before.write_to(disk, dir.path());
    const int64_t num_before = disk.num_calls();
    disk.fail_call(failing);
    bool threw = false;
    try {
      write_checkpoint(disk, dir.path(), before.saved);
    } catch (const CheckpointError& error) {
      threw = true;
      EXPECT_THAT(error.what(), AllOf(HasSubstr("No space left"), HasSubstr("needs "), HasSubstr(" free"),
                                      Not(HasSubstr("\n"))));
    }
    num_failures += threw ? 1 : 0;
    const auto found = newest_checkpoint(dir.path());
    ASSERT_TRUE(found) << failing;
    EXPECT_THAT(found->broken, IsEmpty()) << failing;
    // Only the sync of the parent, after the rename, can fail while the new one is visible already.
    const bool visible = is(found->state, before.saved);
    EXPECT_TRUE(visible || is(found->state, before.newest())) << failing;
    if (!threw) EXPECT_TRUE(visible) << failing;
    EXPECT_TRUE(is(read_checkpoint(dir.file("checkpoints/step-00000100")), before.old)) << failing;
    for (const std::string& name : posix_file_system().list(dir.file("checkpoints"))) {
      EXPECT_FALSE(name.starts_with(".tmp")) << failing;
    }
    save(dir.path(), before.saved);
    EXPECT_TRUE(is(newest_checkpoint(dir.path())->state, before.saved)) << failing;
    if (disk.num_calls() - num_before <= failing) break;
  }
  EXPECT_GT(num_failures, 25);
}

// F5: killed at each call in turn. What is found is the old one or the new one; tidying up leaves only that.
TEST_P(SaveFaults, F5_KilledAtAnyCallTheNewestIsWhole) {
  const Before before{.replaces = GetParam()};
  for (int64_t cut = 0;; ++cut) {
    const ScratchDir dir;
    FailingFileSystem disk = quick_disk();
    before.write_to(disk, dir.path());
    const int64_t num_before = disk.num_calls();
    disk.cut_at_call(cut);
    try {
      write_checkpoint(disk, dir.path(), before.saved);
    } catch (const CheckpointError&) {
    }
    const bool done = disk.num_calls() - num_before <= cut;
    for (const bool tidied : {false, true}) {
      if (tidied) tidy_checkpoints(posix_file_system(), dir.path());
      const auto found = newest_checkpoint(dir.path());
      ASSERT_TRUE(found) << cut;
      EXPECT_THAT(found->broken, IsEmpty()) << cut;
      EXPECT_TRUE(is(found->state, before.saved) || (!done && is(found->state, before.newest()))) << cut;
    }
    for (const std::string& name : posix_file_system().list(dir.file("checkpoints"))) {
      EXPECT_TRUE(parse_checkpoint_name(name)) << cut << " " << name;
    }
    if (done) break;
  }
}

// The same with the power gone: only what was synced is left.
TEST_P(SaveFaults, F7_PowerCutAtAnyCallTheNewestIsWhole) {
  const Before before{.replaces = GetParam()};
  for (int64_t cut = 0;; ++cut) {
    MemoryFileSystem memory;
    before.write_to(memory, "run");
    FailingFileSystem disk(memory);
    disk.cut_at_call(cut);
    bool threw = false;
    try {
      write_checkpoint(disk, "run", before.saved);
    } catch (const CheckpointError&) {
      threw = true;
    }
    memory.cut_power();
    const ScratchDir dir;
    dump(memory, "run", dir);
    const auto found = newest_checkpoint(dir.path());
    ASSERT_TRUE(found) << cut;
    EXPECT_THAT(found->broken, IsEmpty()) << cut;
    EXPECT_TRUE(is(found->state, before.saved) || (threw && is(found->state, before.newest()))) << cut;
    if (disk.num_calls() <= cut) break;
  }
}

TEST(SaveFault, TheFirstSaveThatFailsLeavesNothing) {
  for (int64_t failing = 0;; ++failing) {
    MemoryFileSystem disk;
    disk.fail_call(failing);
    try {
      write_checkpoint(disk, "run", full_state());
      EXPECT_TRUE(disk.has("run/checkpoints/step-00000120/manifest.json"));
    } catch (const CheckpointError&) {
      const bool visible = disk.has("run/checkpoints/step-00000120/manifest.json");
      EXPECT_EQ(disk.num_files(), visible ? 6U : 0U) << failing;
      disk.cut_power();
      EXPECT_FALSE(disk.has("run/checkpoints/step-00000120/manifest.json")) << failing;
    }
    EXPECT_TRUE(disk.all_closed()) << failing;
    if (disk.num_calls() <= failing) break;
  }
}

TEST(SaveFault, F2_OtherErrorsNameTheCallAndThePath) {
  const ScratchDir dir;
  FailingFileSystem disk = quick_disk();
  disk.fail_call(5, EROFS);
  EXPECT_THAT(message_of<CheckpointError>([&] { write_checkpoint(disk, dir.path(), full_state()); }),
              AllOf(HasSubstr("cannot "), HasSubstr(dir.path()),
                    HasSubstr("Read-only file system; check the disk"), Not(HasSubstr("needs"))));
  disk.fail_call(5, EDQUOT);
  EXPECT_THAT(message_of<CheckpointError>([&] { write_checkpoint(disk, dir.path(), full_state()); }),
              AllOf(HasSubstr("Disk quota exceeded (needs "), HasSubstr(" free); make room")));
}

TEST(SaveFault, TidyingNamesWhatFails) {
  const ScratchDir dir;
  save(dir.path(), full_state());
  fs::create_directories(dir.file("checkpoints/.tmp-step-00000121-1"));
  FailingFileSystem disk = quick_disk();
  disk.fail_call(1, EACCES);
  EXPECT_THAT(message_of<CheckpointError>([&] { tidy_checkpoints(disk, dir.path()); }),
              AllOf(HasSubstr(".tmp-step-00000121-1"), HasSubstr("Permission denied")));
  tidy_checkpoints(disk, dir.path());
  EXPECT_THAT(posix_file_system().list(dir.file("checkpoints")), ElementsAre("step-00000120"));
  tidy_checkpoints(disk, dir.file("no run"));
}

// Two checkpoints, of which the newer one is damaged in turn.
class Damage : public ::testing::Test {
 protected:
  Damage() {
    save(dir_.path(), full_state(100, 0.25));
    save(dir_.path(), full_state(120, 0.5));
  }
  [[nodiscard]] std::string newer(const std::string& name) const {
    return "checkpoints/step-00000120/" + name;
  }
  // The file at fault is named, and the one before is found.
  void expect_fallback(const std::string& name, const std::string& where) {
    const auto found = newest_checkpoint(dir_.path());
    ASSERT_TRUE(found) << name << where;
    EXPECT_EQ(found->state.engine.counters.updates, 100) << name << where;
    ASSERT_THAT(found->broken, SizeIs(1)) << name << where;
    EXPECT_THAT(found->broken[0], AllOf(HasSubstr(newer(name)), Not(HasSubstr("\n")))) << where;
    EXPECT_EQ(message_of<CheckpointError>([&] { verify_checkpoint(dir_.file("checkpoints/step-00000120")); }),
              found->broken[0]);
  }
  // `json` becomes the state, under a manifest that is right.
  std::string refusal_of_state(const std::string& json) {
    dir_.write(newer("state.json"), json);
    std::vector<ManifestFile> files = read_manifest(dir_.file(newer("manifest.json")));
    files.back() = {"state.json", json.size(), xxh3(json.data(), json.size())};
    dir_.write(newer("manifest.json"), format_manifest(files));
    return message_of<CheckpointError>(
        [&] { (void)read_checkpoint(dir_.file("checkpoints/step-00000120")); });
  }
  ScratchDir dir_;
  const std::vector<std::string> names_ = {"model.safetensors", "optimizer.safetensors",
                                           "ema.safetensors",   "user.safetensors",
                                           "state.json",        "manifest.json"};
};

TEST_F(Damage, F7_AFlippedByteAnywhereIsFoundAndTheOneBeforeIsTaken) {
  for (const std::string& name : names_) {
    const std::string whole = dir_.read(newer(name));
    const size_t stride = name == "manifest.json" ? 1 : whole.size() / 40 + 1;
    for (size_t place = 0; place < whole.size(); place += stride) {
      std::string bytes = whole;
      bytes[place] = static_cast<char>(bytes[place] ^ (1 << place % 8));
      dir_.write(newer(name), bytes);
      expect_fallback(name, " at " + std::to_string(place));
    }
    dir_.write(newer(name), whole);
  }
  EXPECT_EQ(newest_checkpoint(dir_.path())->state.engine.counters.updates, 120);
}

TEST_F(Damage, F7_TruncatedAnywhereAndMissing) {
  for (const std::string& name : names_) {
    const std::string whole = dir_.read(newer(name));
    for (size_t size = 0; size < whole.size(); size += whole.size() / 30 + 1) {
      dir_.write(newer(name), whole.substr(0, size));
      expect_fallback(name, " cut at " + std::to_string(size));
    }
    dir_.write(newer(name), whole + "x");
    expect_fallback(name, " longer");
    fs::remove(dir_.file(newer(name)));
    expect_fallback(name, " missing");
    fs::create_directory(dir_.file(newer(name)));
    expect_fallback(name, " a folder");
    fs::remove(dir_.file(newer(name)));
    dir_.write(newer(name), whole);
  }
  // What the manifest does not list is nobody's.
  dir_.write(newer("notes.txt"), "mine");
  EXPECT_EQ(newest_checkpoint(dir_.path())->state.engine.counters.updates, 120);
}

TEST_F(Damage, F7_AllBrokenIsAnErrorThatNamesEach) {
  dir_.write(newer("model.safetensors"), "x");
  fs::remove(dir_.file("checkpoints/step-00000100/manifest.json"));
  EXPECT_THAT(message_of<CheckpointError>([&] { (void)newest_checkpoint(dir_.path()); }),
              AllOf(HasSubstr("step-00000120/model.safetensors: expected"),
                    HasSubstr("step-00000100/manifest.json: missing"), Not(HasSubstr("\n"))));
}

TEST_F(Damage, ANewerFormatIsNotBroken) {
  std::string text = dir_.read(newer("manifest.json"));
  text = text.substr(0, text.size() - 28);
  text.replace(text.find("\"format\":1"), 10, "\"format\":2,\"more\":[]");
  text += "\"xxh3\":\"" + xxh3(text.data(), text.size()) + "\"}\n";
  dir_.write(newer("manifest.json"), text);
  EXPECT_THAT(message_of<CheckpointError>([&] { (void)newest_checkpoint(dir_.path()); }),
              AllOf(HasSubstr("step-00000120"), HasSubstr("format 2"), HasSubstr("use a newer gradstep")));
}

TEST_F(Damage, AStateThatSomebodySealedIsNotBelievedEither) {
  const std::string whole = dir_.read(newer("state.json"));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string json = whole;
    json.replace(json.find(from), from.size(), to);
    return refusal_of_state(json);
  };
  EXPECT_THAT(changed("\"fc1.bias\",\"dtype\":\"F32\",\"shape\":[2]",
                      "\"fc1.bias\",\"dtype\":\"F32\",\"shape\":[4611686018427387904]"),
              AllOf(HasSubstr("model.safetensors: tensor fc1.bias is F32 (2), but state.json says")));
  EXPECT_THAT(changed("{\"name\":\"fc1.bias\",\"dtype\":\"F32\",\"shape\":[2]},", ""),
              HasSubstr("model.safetensors: tensor fc1.bias is not listed in state.json"));
  EXPECT_THAT(changed("\"fc1.bias\"", "\"fc9.bias\""), HasSubstr("no tensor fc9.bias"));
  EXPECT_THAT(refusal_of_state("{\"format\":1}"), HasSubstr("state.json: written_by: is missing"));
  EXPECT_THAT(refusal_of_state(std::string(70'000'000, ' ')), HasSubstr("state.json: expected at most"));
}

TEST_F(Damage, AManifestMustListWhatIsNeeded) {
  for (const std::string missing : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    const std::string before = dir_.read(newer("manifest.json"));
    std::vector<ManifestFile> files = read_manifest(dir_.file(newer("manifest.json")));
    std::erase_if(files, [&](const ManifestFile& file) { return file.name == missing; });
    dir_.write(newer("manifest.json"), format_manifest(files));
    EXPECT_THAT(message_of<CheckpointError>(
                    [&] { (void)read_checkpoint_summary(dir_.file("checkpoints/step-00000120")); }),
                HasSubstr("manifest.json: does not list " + missing));
    dir_.write(newer("manifest.json"), before);
  }
}

}  // namespace
}  // namespace gradstep::testing
