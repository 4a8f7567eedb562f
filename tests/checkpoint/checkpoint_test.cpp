// Checkpoints on disk: all of a state comes back bit for bit, names and retention, and what may not be saved.
#include "gradstep/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>

#include "base/machine.h"
#include "checkpoint/checkpoint_files.h"
#include "checkpoint/copy_by_name.h"
#include "checkpoint/disk_room.h"
#include "checkpoint/manifest.h"
#include "checkpoint/state_json.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/model_file.h"
#include "io/hash.h"
#include "support/failing_file_system.h"
#include "support/full_state.h"
#include "support/message_of.h"
#include "support/mlp.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// In the text of state.json all but tensors and info is seen, by the golden file of state_json_test.
void expect_same(const TrainState& read, const TrainState& written) {
  EXPECT_EQ(format_state(read), format_state(written));
  EXPECT_THAT(compare_states(read, written), IsEmpty());
  EXPECT_TRUE(same_bytes(copies(read.model), copies(written.model)));
  EXPECT_TRUE(same_bytes(copies(read.optimizer), copies(written.optimizer)));
  EXPECT_TRUE(same_bytes(copies(read.ema), copies(written.ema)));
}

class Checkpoint : public ::testing::Test {
 protected:
  uint64_t write(const TrainState& state) {
    FailingFileSystem disk(posix_file_system(), /*syncs=*/false);  // quick
    return write_checkpoint(disk, dir_.path(), state);
  }
  [[nodiscard]] std::string path(int64_t update) const {
    return checkpoints_dir(dir_.path()) + "/" + checkpoint_name(update);
  }
  std::string refusal(int64_t update) {
    const std::string message = message_of<CheckpointError>([&] { (void)read_checkpoint(path(update)); });
    EXPECT_THAT(message, Not(HasSubstr("\n")));
    return message;
  }
  ScratchDir dir_;
};

TEST_F(Checkpoint, RoundTrip) {
  const TrainState written = full_state();
  const uint64_t bytes = write_checkpoint(posix_file_system(), dir_.path(), written);
  uint64_t on_disk = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path(120))) on_disk += entry.file_size();
  EXPECT_EQ(bytes, on_disk);
  EXPECT_GE(checkpoint_bytes(written) + 2000, bytes);
  verify_checkpoint(path(120));
  const TrainState read = read_checkpoint(path(120));
  expect_same(read, written);
  EXPECT_EQ(read.info.settings, written.info.settings);
  EXPECT_EQ(read.info.precision, written.info.precision);
  EXPECT_EQ(read.info.update, 120);
  EXPECT_FALSE(read.model[0].second.is_alias_of(written.model[0].second));
}

TEST_F(Checkpoint, WithoutAveragesMomentsOrEvaluations) {
  TrainState written = full_state();
  written.ema.clear();
  written.optimizer.clear();
  written.last_eval.reset();
  written.best_eval.reset();
  written.engine.spikes = {};
  written.stepped_over.clear();
  write(written);
  EXPECT_FALSE(std::filesystem::exists(path(120) + "/ema.safetensors"));
  expect_same(read_checkpoint(path(120)), written);
}

TEST_F(Checkpoint, LiveTensorsOfAModelAndSharedOnes) {
  TrainState written = full_state();
  const at::Tensor live = numbers({4, 3}, 1).requires_grad_();
  const at::Tensor steps = numbers({5}, 2);
  written.model = {{"wte", live}, {"a", live.detach().t()}, {"head", live}, {"count", torch::tensor(3L)}};
  written.optimizer = {{"z.step", steps[1]}, {"a.step", steps[0]}};
  write(written);
  const TrainState read = read_checkpoint(path(120));
  expect_same(read, written);
  EXPECT_TRUE(read.model[0].second.is_alias_of(read.model[2].second));
}

TEST_F(Checkpoint, ItsModelFileIsAModel) {
  TrainState state = full_state();
  torch::manual_seed(0);
  const Task task = make_task({.hidden = 2}, {"mnist", {1, 3}, 4});
  state.model.clear();
  for (const auto& item : task.module->named_parameters()) state.model.emplace_back(item.key(), item.value());
  state.optimizer.clear();
  state.ema.clear();
  write(state);
  const std::string file = path(120) + "/model.safetensors";
  const Task loaded = make_task({.hidden = 2}, {"mnist", {1, 3}, 4});
  load_model(file, read_model_file(file), *loaded.module);
  EXPECT_TRUE(torch::equal(loaded.module->named_parameters()["fc1.weight"], state.model[0].second));
}

TEST_F(Checkpoint, SummaryHasAllButTensors) {
  const TrainState written = full_state();
  write(written);
  const TrainState read = read_checkpoint_summary(path(120));
  EXPECT_THAT(read.model, IsEmpty());
  EXPECT_THAT(read.optimizer, IsEmpty());
  EXPECT_EQ(read.engine.counters.updates, 120);
  EXPECT_EQ(read.best_eval, written.best_eval);
  EXPECT_EQ(read.info.settings.at("dataset"), "mnist");
  std::filesystem::resize_file(path(120) + "/optimizer.safetensors", 10);
  EXPECT_THROW((void)read_checkpoint_summary(path(120)), CheckpointError);
}

TEST_F(Checkpoint, HashesAreThoseOfWholeFiles) {
  TrainState state = full_state();
  state.model.emplace_back("large", numbers({700'001}, 3));
  write(state);
  const std::vector<ManifestFile> files = read_manifest(path(120) + "/manifest.json");
  // Every file but the manifest.
  EXPECT_EQ(files.size(), posix_file_system().list(path(120)).size() - 1);
  ASSERT_GE(files.size(), 3U);
  for (const ManifestFile& file : files) {
    const std::string bytes = dir_.read("checkpoints/step-00000120/" + file.name);
    EXPECT_EQ(file.bytes, bytes.size());
    EXPECT_EQ(file.xxh3, xxh3(bytes.data(), bytes.size())) << file.name;
  }
}

TEST_F(Checkpoint, OneOfTheSameNameIsReplaced) {
  write(full_state(120, 0.5));
  write(full_state(120, 0.75));
  expect_same(read_checkpoint(path(120)), full_state(120, 0.75));
  EXPECT_THAT(posix_file_system().list(checkpoints_dir(dir_.path())), ElementsAre("step-00000120"));
}

// NaN in the parameters never becomes a checkpoint.
TEST_F(Checkpoint, F11_WhatIsNotFiniteIsNotSaved) {
  write(full_state(100));
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                           -std::numeric_limits<double>::infinity()}) {
    TrainState state = full_state();
    state.model[2].second.view({-1})[7] = bad;
    EXPECT_THAT(
        message_of<Diverged>([&] { write(state); }),
        AllOf(HasSubstr("model tensor fc2.weight is not finite at update 120"), Not(HasSubstr("\n"))));
    state = full_state();
    state.ema[1].second[0] = bad;
    EXPECT_THAT(message_of<Diverged>([&] { write(state); }), HasSubstr("fc1.bias is not finite"));
  }
  EXPECT_THAT(posix_file_system().list(checkpoints_dir(dir_.path())), ElementsAre("step-00000100"));
  // Large is not infinite, even where its square is; nor is what is no fraction.
  TrainState state = full_state();
  state.model[2].second.fill_(3e38F);
  state.model.emplace_back("half", torch::full({3}, 6e4, at::kHalf));
  state.model.emplace_back("count", torch::tensor(3L));
  state.model.emplace_back("transposed", numbers({3, 4}, 1).t());
  write(state);
}

// Two parameters of the same shape that were swapped: refused by name.
TEST(CheckParameters, C12_SwappedParametersAreNamed) {
  const NamedTensors stored = {{"a", torch::zeros({2})}, {"b", torch::ones({2})}};
  EXPECT_EQ(check_parameters(stored, stored), "");
  EXPECT_EQ(check_parameters(stored, {stored[1], stored[0]}),
            "tensor 1 is a in the checkpoint and b in this run");
  EXPECT_EQ(check_parameters(stored, {stored[0], {"c", torch::ones({2})}}),
            "tensor 2 is b in the checkpoint and c in this run");
  EXPECT_EQ(check_parameters(stored, {stored[0]}), "tensor 2 b of the checkpoint is not in this run");
  EXPECT_EQ(check_parameters({stored[0]}, stored), "tensor 2 b is not in the checkpoint");
  EXPECT_EQ(check_parameters(stored, {stored[0], {"b", torch::ones({3})}}),
            "tensor 2 b is F32 (2) in the checkpoint and F32 (3) in this run");
  EXPECT_EQ(check_parameters(stored, {stored[0], {"b", torch::ones({2}, at::kDouble)}}),
            "tensor 2 b is F32 (2) in the checkpoint and F64 (2) in this run");
}

TEST_F(Checkpoint, C12_TheOrderOfTheTensorsComesBack) {
  TrainState written = full_state();
  std::swap(written.model[0], written.model[3]);
  std::swap(written.optimizer[0], written.optimizer[5]);
  write(written);
  const TrainState read = read_checkpoint(path(120));
  EXPECT_EQ(check_parameters(read.model, written.model), "");
  EXPECT_EQ(check_parameters(read.optimizer, written.optimizer), "");
  EXPECT_NE(check_parameters(read.model, full_state().model), "");
}

// Memory stays flat however often a checkpoint is read, and only checkpoints are taken for ones.
TEST_F(Checkpoint, C13_ReadOftenMemoryIsFlatAndStaleFoldersAreNoCheckpoints) {
  TrainState state = full_state();
  state.model.emplace_back("large", numbers({250'000}, 3));
  write(state);
  const std::string parent = checkpoints_dir(dir_.path());
  for (const char* stale : {".tmp-step-00000200-17", "step-0000200", "step-00000200x", "step-", "other",
                            "step--0000001", "step-000000200", ".old-other-1", ".old-step-00000300"}) {
    std::filesystem::copy(path(120), parent + "/" + stale);
  }
  EXPECT_THAT(list_checkpoints(dir_.path()), ElementsAre(120));
  int64_t before = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto found = newest_checkpoint(dir_.path());
    ASSERT_TRUE(found);
    ASSERT_EQ(found->path, path(120));
    ASSERT_THAT(found->broken, IsEmpty());
    if (i == 20) before = resident_bytes();
  }
  EXPECT_LT(resident_bytes() - before, 4'000'000);
}

TEST_F(Checkpoint, NoneAtAll) {
  EXPECT_FALSE(newest_checkpoint(dir_.path()));
  EXPECT_THAT(list_checkpoints(dir_.path()), IsEmpty());
  EXPECT_FALSE(newest_checkpoint(dir_.file("none")));
  EXPECT_THAT(message_of<CheckpointError>([&] { (void)read_checkpoint(dir_.file("none")); }),
              HasSubstr("no such checkpoint"));
  dir_.write("checkpoints", "a file");
  EXPECT_THROW((void)list_checkpoints(dir_.path()), CheckpointError);
  EXPECT_THROW((void)newest_checkpoint(dir_.path()), CheckpointError);
  EXPECT_THROW(write(full_state()), CheckpointError);
}

TEST(CheckpointNames, ThereAndBack) {
  EXPECT_EQ(checkpoint_name(120), "step-00000120");
  EXPECT_EQ(checkpoint_name(1234567890), "step-1234567890");
  for (const int64_t update :
       {int64_t{0}, int64_t{7}, int64_t{99999999}, int64_t{100000000}, std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(parse_checkpoint_name(checkpoint_name(update)), update);
  }
  for (const char* name : {"", "step-", "step-120", "step-000000120", "step-0000012x", "step--0000120",
                           "step-99999999999999999999", "Step-00000120", ".tmp-step-00000120-1"}) {
    EXPECT_FALSE(parse_checkpoint_name(name)) << name;
  }
}

TEST(Retention, KeepsTheNewestAndTheBest) {
  EXPECT_THAT(retention({1, 2, 3, 4}, 2, std::nullopt), ElementsAre(1, 2));
  EXPECT_THAT(retention({1, 2, 3, 4}, 2, 1), ElementsAre(2));
  EXPECT_THAT(retention({4, 2, 3, 1}, 1, 4), ElementsAre(1, 2, 3));
  EXPECT_THAT(retention({1, 2}, 2, std::nullopt), IsEmpty());
  EXPECT_THAT(retention({1, 2, 3}, 0, std::nullopt), IsEmpty());
  EXPECT_THAT(retention({}, 3, 7), IsEmpty());
}

TEST(CompareStates, NamesWhatDiffers) {
  const TrainState a = full_state();
  EXPECT_THAT(compare_states(a, a), IsEmpty());
  TrainState b = full_state();
  b.model[0].second.view({-1})[3] += 0.5;
  b.model[0].second.view({-1})[5] = std::numeric_limits<float>::infinity();
  b.optimizer.pop_back();
  b.engine.loss_scale = 128;
  b.engine.spikes.losses[2] = 0.0;
  b.next.index = 5;
  b.best_eval.reset();
  // None of these counts.
  b.seconds = 1;
  b.version = "x";
  b.settings["output_dir"] = "x";
  b.report_positions.clear();
  b.last_eval->time_eval = 9;
  const std::vector<StateDifference> found = compare_states(a, b);
  ASSERT_THAT(found, SizeIs(6));
  EXPECT_EQ(found[0].what, "model fc1.weight");
  EXPECT_THAT(found[0].detail, AllOf(::testing::StartsWith("2 of 6 values, the first at 3: "),
                                     ::testing::EndsWith(", at most inf apart")));
  EXPECT_EQ(found[1].what, "optimizer fc2.bias.step");
  EXPECT_EQ(found[1].detail, "only in the first");
  EXPECT_EQ(found[2].what, "engine loss_scale");
  EXPECT_EQ(found[2].detail, "256 and 128");
  EXPECT_EQ(found[3].detail, "item 2: -0 and 0");
  EXPECT_EQ(found[4].what, "next index");
  EXPECT_EQ(found[5].what, "best_eval");
}

TEST(CompareStates, WhatOtherIntervalsCountedIsNotCompared) {
  TrainState a = full_state();
  a.save_interval = {.value = 2};
  TrainState b = a;
  b.saves_due += 8;
  EXPECT_THAT(compare_states(a, b), SizeIs(1));
  b.save_interval = {.value = 10};
  EXPECT_THAT(compare_states(a, b), IsEmpty());
}

TEST(CompareStates, ValuesAndTensorsOfTheUserCount) {
  const TrainState a = full_state();
  TrainState b = full_state();
  b.user.values["stage"] = "4";
  b.user.values["more"] = "";
  b.user.tensors[1].second[0] = 9;
  const std::vector<StateDifference> found = compare_states(a, b);
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_EQ(found[0].what, "user places");
  EXPECT_EQ(found[1].what, "user value stage");
  EXPECT_EQ(found[1].detail, "3 and 4");
  EXPECT_EQ(found[2].what, "user value more");
}

TEST(CompareStates, BitsCountButNaNIsNaN) {
  const auto difference = [](const at::Tensor& x, const at::Tensor& y) {
    TrainState a, b;
    a.model = {{"t", x}};
    b.model = {{"t", y}};
    const auto found = compare_states(a, b);
    return found.empty() ? std::string() : found[0].detail;
  };
  const at::Tensor nan = torch::full({2}, std::numeric_limits<float>::quiet_NaN());
  const at::Tensor other_nan = torch::tensor({0x7fc00001, -1}, at::kInt).view(at::kFloat);
  EXPECT_EQ(difference(nan, other_nan), "");
  EXPECT_EQ(difference(torch::zeros({2}), torch::tensor({0.0F, -0.0F})),
            "1 of 2 values, the first at 1: 0 and -0, at most 0 apart");
  EXPECT_EQ(difference(torch::zeros({2}), torch::zeros({1, 2})), "Float (2) and Float (1, 2)");
  EXPECT_EQ(difference(torch::zeros({}), torch::ones({})),
            "1 of 1 values, the first at 0: 0 and 1, at most 1 apart");
  EXPECT_EQ(difference(torch::ones({2}, at::kBFloat16), torch::full({2}, 2, at::kBFloat16)),
            "2 of 2 values, the first at 0: 1 and 2, at most 1 apart");
  EXPECT_EQ(difference(torch::ones({2}, at::kLong), torch::ones({2}, at::kLong)), "");
  EXPECT_THAT(difference(torch::ones({2}, at::kBool), torch::zeros({2}, at::kBool)), HasSubstr("2 of 2"));
}

TEST(CheckpointInterop, WritesForPython) {
  const char* const folder = std::getenv("GRADSTEP_INTEROP_DIR");
  if (folder == nullptr) GTEST_SKIP() << "run by test_checkpoint_python.py";
  write_checkpoint(posix_file_system(), folder, full_state(100));
  write_checkpoint(posix_file_system(), folder, full_state(120));
}

TEST_F(Checkpoint, R6_ANameThatLeadsNowhereIsBrokenAndNotGone) {
  write(full_state(100));
  std::filesystem::create_directory_symlink("nowhere", checkpoints_dir(dir_.path()) + "/step-00000120");
  const FoundCheckpoint found = newest_checkpoint(dir_.path()).value();
  EXPECT_EQ(found.state.engine.counters.updates, 100);
  EXPECT_THAT(found.broken, ElementsAre(HasSubstr("step-00000120")));
}

TEST_F(Checkpoint, R4_WhatTheReaderRefusesIsNotWritten) {
  write(full_state(100));
  const auto refuse = [&](const std::function<void(TrainState&)>& change) {
    TrainState state = full_state(120);
    change(state);
    EXPECT_THROW(write(state), CheckpointError);
    EXPECT_THAT(list_checkpoints(dir_.path()), ElementsAre(100));
  };
  refuse([](TrainState& state) { state.global_batch = INT64_MAX; });
  refuse([](TrainState& state) { state.engine.micro_batch = 0; });
  refuse([](TrainState& state) { state.eval_interval.value = NAN; });
  refuse([](TrainState& state) { state.last_eval->metrics.push_back(state.last_eval->metrics.front()); });
  refuse([](TrainState& state) { state.engine.loss_scale = INFINITY; });
  refuse([](TrainState& state) { state.next = {}; });  // R4: it would begin the data again
}

}  // namespace
}  // namespace gradstep::testing
