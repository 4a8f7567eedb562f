// From a model file back to settings and task: nothing that the file says is believed.
#include "app/saved_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "base/machine.h"
#include "gradstep/base/error.h"
#include "support/gradstep_program.h"
#include "support/message_of.h"
#include "support/mlp.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const DatasetSpec kSpec{"mnist", {2, 3}, 4};

class SavedRun : public ::testing::Test {
 protected:
  SavedRun() : path_(dir_.file("model.safetensors")) {
    torch::manual_seed(1);
    task_ = make_task({.hidden = 5, .dropout = 0.25}, kSpec);
    info_.settings = {{"model", "mlp"},     {"hidden", "5"},         {"dropout", "0.25"},
                      {"dataset", "mnist"}, {"val_fraction", "0.1"}, {"seed", "7"}};
    save_model(posix_file_system(), path_, *task_.module, info_);
  }
  Task load(const DatasetSpec& spec = kSpec) {
    const ModelFile file = read_model_file(path_);
    const auto settings = restore_settings(path_, file.info.settings, given_);
    return build_task(path_, file, *settings, spec);
  }
  // What loading says when a setting is another text: one line that begins with the path.
  std::string refusal_of(const std::string& key, const std::string& text, const DatasetSpec& spec = kSpec) {
    ModelInfo info = info_;
    info.settings[key] = text;
    save_model(posix_file_system(), path_, *task_.module, info);
    const std::string message = message_of<CheckpointError>([&] { (void)load(spec); });
    EXPECT_THAT(message, AllOf(StartsWith(path_ + ": "), Not(HasSubstr("\n"))));
    return message;
  }

  ScratchDir dir_;
  std::string path_;
  Task task_;
  ModelInfo info_;
  std::vector<std::pair<std::string, std::string>> given_;
};

TEST_F(SavedRun, TheModelComesBackBitForBit) {
  const Task loaded = load();
  const auto saved = task_.module->named_parameters();
  for (const auto& item : loaded.module->named_parameters())
    EXPECT_TRUE(same_bytes(item.value(), saved[item.key()])) << item.key();
}

TEST_F(SavedRun, NonsenseIsNamed) {
  for (const char* key : {"hidden", "dropout", "val_fraction", "seed"}) {
    for (const char* text : {"", "x", "5x", " 5", "1e400", "99999999999999999999999"})
      EXPECT_THAT(refusal_of(key, text), HasSubstr(key)) << text;
  }
  for (const char* text : {"-0.5", "1.5", "nan", "inf"}) {
    EXPECT_THAT(refusal_of("dropout", text), HasSubstr("dropout"));
    EXPECT_THAT(refusal_of("val_fraction", text), HasSubstr("val_fraction"));
  }
  EXPECT_THAT(refusal_of("model", "gpt"), HasSubstr("gpt"));
  EXPECT_THAT(refusal_of("dataset", "emnist"), AllOf(HasSubstr("emnist"), HasSubstr("--dataset")));
}

TEST_F(SavedRun, AFileWithoutAModelIsNamed) {
  for (const char* key : {"model", "dataset"}) {
    ModelInfo info = info_;
    info.settings.erase(key);
    save_model(posix_file_system(), path_, *task_.module, info);
    EXPECT_THAT(message_of<CheckpointError>([&] { (void)load(); }),
                HasSubstr(std::string("no \"gradstep.") + key));
  }
}

// Sizes that a few hundred bytes of weights cannot have: refused before the memory is taken.
TEST_F(SavedRun, LargeSizesInASmallFileTakeNoMemory) {
  const int64_t before = resident_bytes();
  EXPECT_THAT(refusal_of("hidden", "1000000"), HasSubstr("fewer numbers"));
  EXPECT_THAT(refusal_of("hidden", "5", {"mnist", {16384, 16384}, 4}), HasSubstr("fewer numbers"));
  EXPECT_LT(resident_bytes() - before, int64_t{64} << 20);
}

TEST_F(SavedRun, WhatTheUserGivesWins) {
  given_ = {{"data_dir", dir_.path()}};
  const ModelFile file = read_model_file(path_);
  const auto settings = restore_settings(path_, file.info.settings, given_);
  EXPECT_EQ(settings->dataset().folder(), dir_.path());
  EXPECT_EQ(settings->config.val_fraction, 0.1);
  // Another data set has a test set of its own.
  given_ = {{"dataset", "fashion-mnist"}};
  const auto other = restore_settings(path_, file.info.settings, given_);
  EXPECT_EQ(other->config.dataset, "fashion-mnist");
  EXPECT_EQ(other->config.val_fraction, 0);
  // The recorded one by its name is the recorded one.
  given_ = {{"dataset", "mnist"}};
  EXPECT_EQ(restore_settings(path_, file.info.settings, given_)->config.val_fraction, 0.1);
}

}  // namespace
}  // namespace gradstep::testing
