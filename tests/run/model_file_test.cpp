// The model file: what was saved comes back bit for bit, and nothing a file says is believed.
#include "gradstep/run/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include "gradstep/base/error.h"
#include "gradstep/base/machine.h"
#include "support/memory_file_system.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ModelInfo small_info() {
  return {.model = {.name = "mlp", .hidden = 5, .dropout = 0.25, .label_smoothing = 0.1},
          .dataset = {"mnist", {2, 3}, 4},
          .data_dir = "/some where/with \"quotes\" and \xc3\xa9",
          .val_fraction = 0.1,
          .seed = 18446744073709551615U,
          .precision = Precision::kBf16,
          .matmul = Matmul::kOneDnn,
          .update = 123456789012};
}

class ModelFile : public ::testing::Test {
 protected:
  ModelFile() : path_(dir_.file("model.safetensors")) {
    torch::manual_seed(1);
    task_ = make_task(small_info().model, small_info().dataset);
    save_model(posix_file_system(), path_, *task_.module, small_info());
    whole_ = read_safetensors(path_);
  }
  // What loading says when the file is as `change` makes it: one line that begins with the path.
  template <typename Change>
  std::string refusal(Change change) {
    SafetensorsFile file = whole_;
    change(file);
    write_safetensors(posix_file_system(), path_, file.tensors, file.metadata);
    const std::string message = message_of<CheckpointError>([&] { (void)load_model(path_); });
    EXPECT_THAT(message, AllOf(::testing::StartsWith(path_ + ": "), Not(HasSubstr("\n"))));
    return message;
  }
  std::string refusal_of(const std::string& key, const std::string& value) {
    return refusal([&](SafetensorsFile& file) { file.metadata["gradstep." + key] = value; });
  }
  ScratchDir dir_;
  std::string path_;
  Task task_;
  SafetensorsFile whole_;
};

TEST_F(ModelFile, ComesBackBitForBit) {
  const LoadedModel loaded = load_model(path_);
  const ModelInfo expected = small_info();
  EXPECT_EQ(loaded.info.model.name, expected.model.name);
  EXPECT_EQ(loaded.info.model.hidden, expected.model.hidden);
  EXPECT_EQ(loaded.info.model.dropout, expected.model.dropout);
  EXPECT_EQ(loaded.info.model.label_smoothing, expected.model.label_smoothing);
  EXPECT_EQ(loaded.info.dataset.name, expected.dataset.name);
  EXPECT_EQ(loaded.info.dataset.input_shape, expected.dataset.input_shape);
  EXPECT_EQ(loaded.info.dataset.num_classes, expected.dataset.num_classes);
  EXPECT_EQ(loaded.info.data_dir, expected.data_dir);
  EXPECT_EQ(loaded.info.val_fraction, expected.val_fraction);
  EXPECT_EQ(loaded.info.seed, expected.seed);
  EXPECT_EQ(loaded.info.precision, expected.precision);
  EXPECT_EQ(loaded.info.matmul, expected.matmul);
  EXPECT_EQ(loaded.info.update, expected.update);
  const auto saved = task_.module->named_parameters();
  const auto read = loaded.task.module->named_parameters();
  ASSERT_EQ(read.size(), saved.size());
  for (const auto& item : saved) EXPECT_TRUE(same_bytes(item.value(), read[item.key()])) << item.key();
  const at::Tensor pictures = torch::randint(256, {3, 2, 3}, at::kByte);
  task_.module->eval();
  loaded.task.module->eval();
  EXPECT_TRUE(same_bytes(loaded.task.forward(loaded.task.prepare({pictures, {}})),
                         task_.forward(task_.prepare({pictures, {}}))));
  for (const at::Tensor& parameter : loaded.task.module->parameters()) EXPECT_TRUE(parameter.requires_grad());
}

// The format holds UTF-8 only, Linux paths are any bytes: the weights are not lost for a path.
TEST_F(ModelFile, AFolderThatIsNotUtf8IsNoReasonNotToSave) {
  ModelInfo info = small_info();
  info.data_dir = "/data/caf\xe9/\"x\"";
  save_model(posix_file_system(), path_, *task_.module, info);
  EXPECT_EQ(load_model(path_).info.data_dir, "/data/caf\xef\xbf\xbd/\"x\"");
}

TEST_F(ModelFile, SavingAgainGivesTheSameBytes) {
  const std::string bytes = dir_.read("model.safetensors");
  const LoadedModel loaded = load_model(path_);
  save_model(posix_file_system(), path_, *loaded.task.module, loaded.info);
  EXPECT_EQ(dir_.read("model.safetensors"), bytes);
}

TEST_F(ModelFile, IsWrittenAtomically) {
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

TEST_F(ModelFile, AFileOfSomebodyElseIsRefused) {
  EXPECT_THAT(refusal([](SafetensorsFile& file) { file.metadata.clear(); }),
              HasSubstr("not a model file of gradstep"));
  dir_.write("model.safetensors", "not at all");
  EXPECT_THROW((void)load_model(path_), CheckpointError);
  EXPECT_THAT(message_of<CheckpointError>([&] { (void)load_model(dir_.file("absent")); }),
              HasSubstr("absent"));
  EXPECT_THROW((void)load_model(dir_.path()), CheckpointError);
}

TEST_F(ModelFile, EveryMissingKeyIsNamed) {
  const std::set<std::string> only_for_people{"gradstep.version", "gradstep.git_commit", "gradstep.input"};
  for (const auto& [key, value] : whole_.metadata) {
    const std::string gone = key;
    if (!gone.starts_with("gradstep.") || only_for_people.contains(gone)) continue;
    EXPECT_THAT(refusal([&](SafetensorsFile& file) { file.metadata.erase(gone); }), HasSubstr(gone));
  }
}

TEST_F(ModelFile, NonsenseInTheMetadataIsNamed) {
  for (const char* key :
       {"hidden", "num_classes", "seed", "update", "dropout", "label_smoothing", "val_fraction"}) {
    for (const char* value : {"", "x", "5x", " 5", "1e400", "99999999999999999999999"}) {
      EXPECT_THAT(refusal_of(key, value), HasSubstr(std::string("gradstep.") + key)) << value;
    }
  }
  for (const char* key : {"hidden", "num_classes", "update"})
    EXPECT_THAT(refusal_of(key, "-5"), HasSubstr(key));
  for (const char* key : {"dropout", "label_smoothing", "val_fraction"}) {
    for (const char* value : {"-0.5", "1.5", "nan", "inf"})
      EXPECT_THAT(refusal_of(key, value), HasSubstr(key)) << value;
  }
  for (const char* value :
       {"0", "-1", "2x", "x3", "2x-3", "2xx3", "2,3", "99999999x99999999", "9223372036854775807x2"}) {
    EXPECT_THAT(refusal_of("input_shape", value), HasSubstr("")) << value;
  }
  EXPECT_THAT(refusal_of("model", "gpt"), HasSubstr("gpt"));
  EXPECT_THAT(refusal_of("precision", "fp8"), HasSubstr("fp8"));
  EXPECT_THAT(refusal_of("matmul", "abacus"), HasSubstr("abacus"));
}

// Sizes that a few hundred bytes of weights cannot have: refused before the memory is taken. Any of them
// would need gigabytes.
TEST_F(ModelFile, LargeSizesInASmallFileTakeNoMemory) {
  const int64_t before = resident_bytes();
  EXPECT_THAT(refusal_of("num_classes", "16777216"), HasSubstr("fewer numbers"));
  EXPECT_THAT(refusal_of("hidden", "16777216"), HasSubstr("fewer numbers"));
  EXPECT_THAT(refusal_of("input_shape", "16384x16384"), HasSubstr("fewer numbers"));
  EXPECT_THAT(refusal([](SafetensorsFile& file) {
                file.metadata["gradstep.num_classes"] = "16777216";
                // Second names of one tensor do not make the file larger.
                for (int i = 0; i < 1000; ++i) file.metadata["alias:w" + std::to_string(i)] = "fc1.weight";
              }),
              HasSubstr("fewer numbers"));
  EXPECT_LT(resident_bytes() - before, int64_t{64} << 20);
}

TEST_F(ModelFile, WrongTensorsAreNamed) {
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
TEST_F(ModelFile, FlippedBytesOfTheHeaderDoNoHarm) {
  const std::string bytes = dir_.read("model.safetensors");
  const size_t end = bytes.find("}}");
  ASSERT_NE(end, std::string::npos);
  for (size_t i = 0; i < end; i += 3) {
    std::string broken = bytes;
    broken[i] = static_cast<char>(broken[i] ^ 0x11);
    dir_.write("model.safetensors", broken);
    try {
      (void)load_model(path_);
    } catch (const CheckpointError& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << i;
    }
  }
}

}  // namespace
}  // namespace gradstep::testing
