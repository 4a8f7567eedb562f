// Checkpointer: what a save holds, what it exports, what it keeps, and what it leaves alone.
#include "gradstep/checkpoint/checkpointer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <latch>
#include <map>

#include "gradstep/base/error.h"
#include "gradstep/checkpoint/model_file.h"
#include "support/hooked_file_system.h"
#include "support/message_of.h"
#include "support/saves.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

std::map<std::string, std::string> content_of(const ScratchDir& dir) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(dir.path())) {
    const std::string name = fs::relative(entry.path(), dir.path()).string();
    files[name] = entry.is_regular_file() ? dir.read(name) : "";
  }
  return files;
}

uint64_t size_of(const std::string& folder) {
  uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

class CheckpointerTest : public ::testing::Test {
 protected:
  [[nodiscard]] CheckpointerOptions options(int64_t keep = 3) const {
    return {.output_dir = dir_.path(), .keep = keep};
  }
  [[nodiscard]] TrainState newest() const {
    const auto found = newest_checkpoint(dir_.path());
    EXPECT_TRUE(found && found->broken.empty());
    return found ? found->state : TrainState{};
  }
  ScratchDir dir_;
  FailingFileSystem disk_ = quick_disk();
};

TEST_F(CheckpointerTest, F5_WhatChangesAfterSaveReturnedIsNotInTheFile) {
  std::latch changed(1);
  HookedFileSystem disk(disk_, [&](const std::string& what, const std::string&) {
    if (what == "ask") changed.wait();  // the first call of a save
  });
  Checkpointer checkpointer(disk, options());
  const TrainState state = state_at(120);
  checkpointer.save(state, {.best = true});
  EXPECT_TRUE(checkpointer.in_flight());
  for (const NamedTensors* tensors : {&state.model, &state.optimizer, &state.ema}) {
    for (const auto& [name, tensor] : *tensors) tensor.fill_(-7);
  }
  changed.count_down();
  EXPECT_EQ(outcome_of(checkpointer).error, "");
  EXPECT_FALSE(checkpointer.in_flight());
  EXPECT_TRUE(is(newest(), state_at(120)));
  const NamedTensors model = state_at(120).model;
  EXPECT_TRUE(same_bytes(tensors_of(dir_.file("best.safetensors"), model), copies(model)));
}

// Views, other types and empty tensors are copied as well as plain ones.
TEST_F(CheckpointerTest, EveryKindOfTensorIsCopied) {
  const auto with_all_kinds = [] {
    TrainState state = state_at(1);
    state.model = {{"transposed", numbers({3, 5}, 1).t()},
                   {"part", numbers({6, 4}, 2).narrow(1, 1, 2)},
                   {"half", numbers({7}, 3).to(at::kHalf)},
                   {"bf16", numbers({7}, 4).to(at::kBFloat16)},
                   {"double", numbers({2}, 5).to(at::kDouble)},
                   {"count", torch::tensor({int64_t{1} << 60, int64_t{-1}})},
                   {"scalar", torch::tensor(2.5)},
                   {"empty", torch::zeros({0, 3})}};
    return state;
  };
  Checkpointer checkpointer(disk_, options());
  TrainState state = with_all_kinds();
  ASSERT_EQ(save_and_wait(checkpointer, state).error, "");
  EXPECT_THAT(compare_states(newest(), with_all_kinds()), IsEmpty());
  // Other shapes in their places, in the memory that was kept.
  std::ranges::reverse(state.model);
  state.engine.counters.updates = 2;
  ASSERT_EQ(save_and_wait(checkpointer, state).error, "");
  EXPECT_THAT(compare_states(newest(), state), IsEmpty());
}

TEST_F(CheckpointerTest, ASaveThatFallsDueWaitsForTheOneInFlight) {
  std::latch second_falls_due(1);
  std::atomic<bool> second_returned = false;
  std::atomic<int> num_calls_of_first = 0;
  HookedFileSystem disk(disk_, [&](const std::string& what, const std::string& path) {
    if (what == "ask") second_falls_due.wait();
    if (path.find("step-00000100") == std::string::npos) return;
    EXPECT_FALSE(second_returned) << what;
    ++num_calls_of_first;
  });
  Checkpointer checkpointer(disk, options());
  checkpointer.save(state_at(100));
  EXPECT_THAT(checkpointer.outcomes(), IsEmpty());
  second_falls_due.count_down();
  checkpointer.save(state_at(120));
  second_returned = true;
  checkpointer.wait();
  const std::vector<SaveOutcome> outcomes = checkpointer.outcomes();
  ASSERT_EQ(outcomes.size(), 2U);
  EXPECT_EQ(outcomes[0].update, 100);
  EXPECT_EQ(outcomes[1].update, 120);
  EXPECT_GT(num_calls_of_first, 10);
  EXPECT_TRUE(is(read_checkpoint(dir_.file("checkpoints/step-00000100")), state_at(100)));
  EXPECT_TRUE(is(read_checkpoint(dir_.file("checkpoints/step-00000120")), state_at(120)));
}

TEST_F(CheckpointerTest, DestroyingWaits) {
  std::latch leaving(1);
  HookedFileSystem disk(disk_, [&](const std::string& what, const std::string&) {
    if (what == "ask") leaving.wait();
  });
  {
    Checkpointer checkpointer(disk, options());
    checkpointer.save(state_at(100));
    leaving.count_down();
  }
  EXPECT_TRUE(is(newest(), state_at(100)));
}

TEST_F(CheckpointerTest, OutcomesCountBytesAndSeconds) {
  Checkpointer checkpointer(disk_, options());
  EXPECT_FALSE(checkpointer.save_seconds());
  EXPECT_FALSE(checkpointer.in_flight());
  const SaveOutcome outcome =
      save_and_wait(checkpointer, state_at(100), {.best = true, .export_model = true});
  EXPECT_EQ(outcome.update, 100);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.bytes, size_of(dir_.path()));
  EXPECT_GT(outcome.stall_seconds, 0);
  EXPECT_GE(outcome.seconds, outcome.stall_seconds);
  EXPECT_EQ(checkpointer.save_seconds(), outcome.seconds);
  EXPECT_THAT(checkpointer.outcomes(), IsEmpty());
}

// Parameters and buffers of the exports, by name.
TEST_F(CheckpointerTest, ExportsAndTheirAveragesLoad) {
  Checkpointer checkpointer(disk_, options());
  const TrainState state = state_at(120);
  ASSERT_EQ(save_and_wait(checkpointer, state, {.best = true, .export_model = true}).error, "");
  for (const std::string name : {"best", "model"}) {
    const std::string file = dir_.file(name + ".safetensors");
    EXPECT_TRUE(same_bytes(tensors_of(file, state.model), copies(state.model))) << name;
    EXPECT_EQ(read_model_file(file).info.update, 120);
    EXPECT_TRUE(same_bytes(tensors_of(dir_.file(name + "-ema.safetensors"), state.ema), copies(state.ema)))
        << name;
  }
  EXPECT_EQ(dir_.num_entries(), 5);
}

TEST_F(CheckpointerTest, WithoutAveragesThereAreNoTwinsAndWithoutARequestNoExports) {
  Checkpointer checkpointer(disk_, options());
  TrainState state = state_at(100);
  state.ema.clear();
  ASSERT_EQ(save_and_wait(checkpointer, state).error, "");
  EXPECT_THAT(disk_.list(dir_.path()), ElementsAre("checkpoints"));
  state.engine.counters.updates = 120;
  ASSERT_EQ(save_and_wait(checkpointer, state, {.best = true}).error, "");
  EXPECT_THAT(disk_.list(dir_.path()), ElementsAre("best.safetensors", "checkpoints"));
}

// The average has the first name only, as the parameter has in the optimizer; buffers have none.
TEST_F(CheckpointerTest, ATiedParameterIsOneInAllFiles) {
  TrainState state = state_at(120);
  const at::Tensor tied = state.model[0].second;
  state.model.emplace_back("head.weight", tied);
  state.model.emplace_back("norm.running_mean", numbers({6}, 9));
  Checkpointer checkpointer(disk_, options());
  ASSERT_EQ(save_and_wait(checkpointer, state, {.export_model = true}).error, "");
  const auto of_file = [&](const std::string& file) {
    const NamedTensors tensors = read_safetensors(dir_.file(file)).tensors;
    return std::map<std::string, at::Tensor>(tensors.begin(), tensors.end());
  };
  const auto model = of_file("model.safetensors");
  EXPECT_TRUE(same_bytes(model.at("head.weight"), tied));
  const auto averaged = of_file("model-ema.safetensors");
  EXPECT_TRUE(same_bytes(averaged.at("fc1.weight"), tied * 0.5));
  EXPECT_TRUE(same_bytes(averaged.at("head.weight"), tied * 0.5));
  EXPECT_TRUE(same_bytes(averaged.at("norm.running_mean"), numbers({6}, 9)));
  EXPECT_THAT(compare_states(newest(), state), IsEmpty());
}

TEST_F(CheckpointerTest, TheSameStateAgainIsExportedOnly) {
  Checkpointer checkpointer(disk_, options());
  const TrainState state = state_at(120);
  ASSERT_EQ(save_and_wait(checkpointer, state).error, "");
  const auto before = content_of(dir_);
  const int64_t num_calls = disk_.num_calls();
  EXPECT_EQ(save_and_wait(checkpointer, state).error, "");
  EXPECT_EQ(disk_.num_calls(), num_calls);
  const SaveOutcome exported = save_and_wait(checkpointer, state, {.export_model = true});
  EXPECT_EQ(exported.error, "");
  EXPECT_EQ(exported.bytes, size_of(dir_.path()) - size_of(dir_.file("checkpoints")));
  for (size_t i = static_cast<size_t>(num_calls); i < disk_.calls().size(); ++i) {
    if (disk_.calls()[i].starts_with("ask for the free space")) continue;
    EXPECT_THAT(disk_.calls()[i], Not(HasSubstr("checkpoints")));
  }
  // What happened without an update counts.
  ASSERT_EQ(save_and_wait(checkpointer, evaluated(state)).error, "");
  EXPECT_TRUE(is(newest(), evaluated(state)));
  EXPECT_NE(content_of(dir_), before);
}

TEST_F(CheckpointerTest, AStateThatWasReadHereIsNotWrittenAgain) {
  {
    Checkpointer first(disk_, options());
    ASSERT_EQ(save_and_wait(first, state_at(120)).error, "");
  }
  Checkpointer checkpointer(disk_, options());
  checkpointer.note_saved(newest());
  const auto before = content_of(dir_);
  EXPECT_EQ(save_and_wait(checkpointer, state_at(120)).error, "");
  EXPECT_EQ(content_of(dir_), before);
  ASSERT_EQ(save_and_wait(checkpointer, state_at(121)).error, "");
  EXPECT_TRUE(is(newest(), state_at(121)));
}

TEST_F(CheckpointerTest, KeepsTheNewestAndTheBest) {
  Checkpointer checkpointer(disk_, options(2));
  for (int64_t update = 10; update <= 60; update += 10) {
    TrainState state = state_at(update);
    if (update >= 20) state.best_eval = EvalRow{.update = 20, .best = true};
    ASSERT_EQ(save_and_wait(checkpointer, state).error, "");
  }
  EXPECT_THAT(list_checkpoints(dir_.path()), ElementsAre(20, 50, 60));
  // A run that went back: the one just written stays beside the newest of those it left.
  ASSERT_EQ(save_and_wait(checkpointer, state_at(30)).error, "");
  EXPECT_THAT(list_checkpoints(dir_.path()), ElementsAre(30, 50, 60));
}

TEST_F(CheckpointerTest, KeepZeroKeepsAll) {
  Checkpointer checkpointer(disk_, options(0));
  for (int64_t update = 1; update <= 6; ++update)
    ASSERT_EQ(save_and_wait(checkpointer, state_at(update)).error, "");
  EXPECT_THAT(list_checkpoints(dir_.path()), ElementsAre(1, 2, 3, 4, 5, 6));
}

// F4: whatever call the process is at, a whole checkpoint is there.
TEST_F(CheckpointerTest, F4_WithKeepOneThereIsAlwaysAWholeCheckpoint) {
  int num_looks = 0;
  bool has_first = false;
  HookedFileSystem disk(disk_, [&](const std::string& what, const std::string& path) {
    if (!has_first) return;
    ++num_looks;
    const auto found = newest_checkpoint(dir_.path());
    ASSERT_TRUE(found) << what << " " << path;
    EXPECT_THAT(found->broken, IsEmpty()) << what << " " << path;
  });
  Checkpointer checkpointer(disk, options(1));
  ASSERT_EQ(save_and_wait(checkpointer, state_at(10)).error, "");
  has_first = true;
  ASSERT_EQ(save_and_wait(checkpointer, state_at(20)).error, "");
  ASSERT_EQ(save_and_wait(checkpointer, evaluated(state_at(20))).error, "");
  ASSERT_EQ(save_and_wait(checkpointer, state_at(30)).error, "");
  EXPECT_THAT(list_checkpoints(dir_.path()), ElementsAre(30));
  EXPECT_GT(num_looks, 60);
}

TEST_F(CheckpointerTest, F11_WhatIsNotFiniteIsNeitherExportedNorSaved) {
  Checkpointer checkpointer(disk_, options(1));
  ASSERT_EQ(save_and_wait(checkpointer, state_at(100), {.best = true, .export_model = true}).error, "");
  const auto before = content_of(dir_);
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    TrainState state = state_at(120);
    state.model[2].second[3][1] = value;
    EXPECT_THAT(save_and_wait(checkpointer, state, {.best = true, .export_model = true}).error,
                AllOf(HasSubstr("fc2.weight is not finite at update 120"), Not(HasSubstr("\n"))));
    EXPECT_EQ(content_of(dir_), before);
  }
  TrainState state = state_at(120);
  state.ema[3].second[0] = NAN;
  EXPECT_THAT(save_and_wait(checkpointer, state, {.best = true}).error,
              HasSubstr("moving average of fc2.bias is not finite"));
  EXPECT_EQ(content_of(dir_), before);
  ASSERT_EQ(save_and_wait(checkpointer, state_at(120)).error, "");
  EXPECT_TRUE(is(newest(), state_at(120)));
}

// Squares of these are beyond fp32; they themselves are not.
TEST_F(CheckpointerTest, LargeNumbersAreFinite) {
  Checkpointer checkpointer(disk_, options());
  TrainState state = state_at(100);
  state.model[0].second.fill_(3e38);
  EXPECT_EQ(save_and_wait(checkpointer, state).error, "");
}

TEST_F(CheckpointerTest, WhatAKilledRunLeftIsCleared) {
  {
    Checkpointer first(disk_, options());
    ASSERT_EQ(save_and_wait(first, state_at(100)).error, "");
  }
  fs::create_directories(dir_.file("checkpoints/.tmp-step-00000121-1"));
  fs::copy(dir_.file("checkpoints/step-00000100"), dir_.file("checkpoints/.old-step-00000090-1"));
  for (const std::string name :
       {".best.safetensors.tmp-12-0", ".best-ema.safetensors.tmp-1-3", ".model.safetensors.tmp-1-0",
        ".model-ema.safetensors.tmp-1-0", ".rate.tmp-1"}) {
    dir_.write(name, "half");
  }
  for (const std::string name : {".notes.tmp", "best.safetensors", ".gradstep.lock"})
    dir_.write(name, "mine");
  const Checkpointer checkpointer(disk_, options());
  EXPECT_THAT(disk_.list(dir_.path()),
              UnorderedElementsAre(".notes.tmp", "best.safetensors", ".gradstep.lock", "checkpoints"));
  EXPECT_THAT(list_checkpoints(dir_.path()), ElementsAre(90, 100));
  EXPECT_EQ(disk_.list(dir_.file("checkpoints")).size(), 2U);
}

// Of two with one name the whole one is kept.
TEST_F(CheckpointerTest, WhatWasMovedAsideStaysWhereItsSuccessorIsBroken) {
  {
    Checkpointer(disk_, options()).save(state_at(90), {});
  }
  const std::string place = dir_.file("checkpoints/step-00000090");
  const std::string aside = dir_.file("checkpoints/.old-step-00000090-1");
  fs::copy(place, aside);
  fs::remove(place + "/model.safetensors");
  {
    const Checkpointer starts(disk_, options());
  }
  ASSERT_TRUE(fs::exists(aside));
  EXPECT_EQ(newest_checkpoint(dir_.path())->path, aside);
  {
    Checkpointer(disk_, options()).save(state_at(90), {});
  }
  {
    const Checkpointer starts(disk_, options());
  }
  EXPECT_FALSE(fs::exists(aside));
  EXPECT_EQ(newest_checkpoint(dir_.path())->path, place);
}

TEST_F(CheckpointerTest, ClearingThatFailsIsNamed) {
  dir_.write(".rate.tmp-1", "half");
  for (int64_t failing = 0; failing < 3; ++failing) {
    disk_.fail_call(failing, EACCES);
    EXPECT_THAT(message_of<CheckpointError>([&] { Checkpointer(disk_, options()); }),
                AllOf(HasSubstr(dir_.path()), HasSubstr("Permission denied"), Not(HasSubstr("\n"))));
  }
}

// A checkpoint must not know of rows that a power cut can take.
TEST_F(CheckpointerTest, ReportsAreSyncedBeforeTheCheckpointAppears) {
  dir_.write("metrics.jsonl", "{}\n");
  Checkpointer checkpointer(disk_, options());
  ASSERT_EQ(save_and_wait(checkpointer, state_at(120)).error, "");
  const auto& calls = disk_.calls();
  const auto synced = std::ranges::find(calls, "sync file " + dir_.file("metrics.jsonl"));
  const auto appears = std::ranges::find(calls, "rename " + dir_.file("checkpoints/step-00000120"));
  ASSERT_NE(appears, calls.end());
  EXPECT_LT(synced, appears);
  EXPECT_EQ(std::ranges::count_if(calls, [](const auto& call) { return call.starts_with("sync file"); }), 1);
}

}  // namespace
}  // namespace gradstep::testing
