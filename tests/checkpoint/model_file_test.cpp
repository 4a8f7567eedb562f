// The model file: what was saved comes back bit for bit, and nothing a file says is believed.
#include "gradstep/checkpoint/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "support/memory_file_system.h"
#include "support/message_of.h"
#include "support/mlp.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr ModelOptions kModel{.hidden = 5, .dropout = 0.25, .label_smoothing = 0.1};
const DatasetSpec kSpec{"mnist", {2, 3}, 4};

ModelInfo small_info() {
  return {.settings = {{"model", "mlp"},
                       {"hidden", "5"},
                       {"data_dir", "/some where/with \"quotes\" and \xc3\xa9"},
                       {"seed", "18446744073709551615"}},
          .precision = Precision::kBf16,
          .matmul = Matmul::kOneDnn,
          .update = 123456789012};
}

class ModelFileTest : public ::testing::Test {
 protected:
  ModelFileTest() : path_(dir_.file("model.safetensors")) {
    torch::manual_seed(1);
    task_ = make_task(kModel, kSpec);
    save_model(posix_file_system(), path_, *task_.module, small_info());
    whole_ = read_safetensors(path_);
  }
  // What loading says when the file is as `change` makes it: one line that begins with the path.
  template <typename Change>
  std::string refusal(Change change) {
    SafetensorsFile file = whole_;
    change(file);
    write_safetensors(posix_file_system(), path_, file.tensors, file.metadata);
    const std::string message = message_of<CheckpointError>([&] { load(); });
    EXPECT_THAT(message, AllOf(::testing::StartsWith(path_ + ": "), Not(HasSubstr("\n"))));
    return message;
  }
  // Into a new module.
  Task load() {
    Task task = make_task(kModel, kSpec);
    load_model(path_, read_model_file(path_), *task.module);
    return task;
  }
  std::string refusal_of(const std::string& key, const std::string& value) {
    return refusal([&](SafetensorsFile& file) { file.metadata["gradstep." + key] = value; });
  }
  ScratchDir dir_;
  std::string path_;
  Task task_;
  SafetensorsFile whole_;
};

TEST_F(ModelFileTest, ComesBackBitForBit) {
  const ModelInfo info = read_model_file(path_).info;
  const ModelInfo expected = small_info();
  EXPECT_EQ(info.settings, expected.settings);
  EXPECT_EQ(info.precision, expected.precision);
  EXPECT_EQ(info.matmul, expected.matmul);
  EXPECT_EQ(info.update, expected.update);
  const Task loaded = load();
  const auto saved = task_.module->named_parameters();
  const auto read = loaded.module->named_parameters();
  ASSERT_EQ(read.size(), saved.size());
  for (const auto& item : saved) EXPECT_TRUE(same_bytes(item.value(), read[item.key()])) << item.key();
  const at::Tensor pictures = torch::randint(256, {3, 2, 3}, at::kByte);
  task_.module->eval();
  loaded.module->eval();
  EXPECT_TRUE(same_bytes(loaded.forward(loaded.prepare({pictures, {}})),
                         task_.forward(task_.prepare({pictures, {}}))));
  for (const at::Tensor& parameter : loaded.module->parameters()) EXPECT_TRUE(parameter.requires_grad());
}

// The format holds UTF-8 only, Linux paths are any bytes: the weights are not lost for a path.
TEST_F(ModelFileTest, AFolderThatIsNotUtf8IsNoReasonNotToSave) {
  ModelInfo info = small_info();
  info.settings["data_dir"] = "/data/caf\xe9/\"x\"";
  save_model(posix_file_system(), path_, *task_.module, info);
  EXPECT_EQ(read_model_file(path_).info.settings.at("data_dir"), "/data/caf\xef\xbf\xbd/\"x\"");
}

TEST_F(ModelFileTest, SavingAgainGivesTheSameBytes) {
  const std::string bytes = dir_.read("model.safetensors");
  const ModelFile file = read_model_file(path_);
  save_model(posix_file_system(), path_, file.tensors, file.info);
  EXPECT_EQ(dir_.read("model.safetensors"), bytes);
}

TEST_F(ModelFileTest, IsWrittenAtomically) {
  MemoryFileSystem disk;
  save_model(disk, "/out/model.safetensors", *task_.module, small_info());
  const std::string before = disk.content("/out/model.safetensors");
  const int64_t num_calls = disk.num_calls();
  ModelInfo later = small_info();
  later.update = 7;
  for (int64_t call = 0; call < num_calls; ++call) {
    disk.fail_call(call);
    try {
      save_model(disk, "/out/model.safetensors", *task_.module, later);
    } catch (const CheckpointError&) {
    }
    disk.cut_power();
    const std::string& now = disk.content("/out/model.safetensors");
    EXPECT_TRUE(now == before || now.find("\"7\"") != std::string::npos) << call;
    EXPECT_EQ(now.size() / 64, before.size() / 64);  // whole either way
    disk.put("/out/model.safetensors", before);
  }
}

TEST_F(ModelFileTest, AFileOfSomebodyElseIsRefused) {
  EXPECT_THAT(refusal([](SafetensorsFile& file) { file.metadata.clear(); }),
              HasSubstr("not a model file of gradstep"));
  dir_.write("model.safetensors", "not at all");
  EXPECT_THROW((void)read_model_file(path_), CheckpointError);
  EXPECT_THAT(message_of<CheckpointError>([&] { (void)read_model_file(dir_.file("absent")); }),
              HasSubstr("absent"));
  EXPECT_THROW((void)read_model_file(dir_.path()), CheckpointError);
}

TEST_F(ModelFileTest, WhatEveryModelFileHasIsNeeded) {
  for (const std::string key : {"precision", "matmul", "update"}) {
    EXPECT_THAT(refusal([&](SafetensorsFile& file) { file.metadata.erase("gradstep." + key); }),
                HasSubstr("gradstep." + key));
  }
  for (const char* value : {"", "x", "5x", " 5", "1e400", "99999999999999999999999", "-5"})
    EXPECT_THAT(refusal_of("update", value), HasSubstr("gradstep.update")) << value;
  EXPECT_THAT(refusal_of("precision", "fp8"), HasSubstr("fp8"));
  EXPECT_THAT(refusal_of("matmul", "abacus"), HasSubstr("abacus"));
}

TEST_F(ModelFileTest, WrongTensorsAreNamed) {
  EXPECT_THAT(
      refusal([](SafetensorsFile& file) { file.tensors.emplace_back("extra", torch::zeros({1000})); }),
      HasSubstr("extra"));
  const auto find = [](SafetensorsFile& file, const std::string& name) {
    return std::find_if(file.tensors.begin(), file.tensors.end(),
                        [&](const auto& each) { return each.first == name; });
  };
  EXPECT_THAT(refusal([&](SafetensorsFile& file) { file.tensors.erase(find(file, "fc2.bias")); }),
              AllOf(HasSubstr("fc2.bias"), HasSubstr("missing")));
  EXPECT_THAT(refusal([&](SafetensorsFile& file) {
                find(file, "fc1.weight")->second = find(file, "fc1.weight")->second.t().contiguous();
              }),
              AllOf(HasSubstr("fc1.weight"), HasSubstr("[6, 5]"), HasSubstr("[5, 6]")));
  EXPECT_THAT(refusal([&](SafetensorsFile& file) {
                find(file, "fc1.bias")->second = find(file, "fc1.bias")->second.to(at::kDouble);
              }),
              AllOf(HasSubstr("fc1.bias"), HasSubstr("Double")));
}

// Every third byte of the header changed, one at a time: an error of ours or a model, never anything else.
TEST_F(ModelFileTest, FlippedBytesOfTheHeaderDoNoHarm) {
  const std::string bytes = dir_.read("model.safetensors");
  const size_t end = bytes.find("}}");
  ASSERT_NE(end, std::string::npos);
  for (size_t i = 0; i < end; i += 3) {
    std::string broken = bytes;
    broken[i] = static_cast<char>(broken[i] ^ 0x11);
    dir_.write("model.safetensors", broken);
    try {
      (void)load();
    } catch (const CheckpointError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << i;
    }
  }
}

}  // namespace
}  // namespace gradstep::testing
