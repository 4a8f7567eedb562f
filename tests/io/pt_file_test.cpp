// .pt files: what LibTorch's reader finds in them, sharing, odd tensors, refusals, and a disk that fails.
#include "io/pt_file.h"

#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/import_read.h>
#include <torch/torch.h>

#include <cstdlib>

#include "gradstep/base/error.h"
#include "gradstep/io/safetensors.h"
#include "support/memory_file_system.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Named = std::vector<std::pair<std::string, at::Tensor>>;

class PtFile : public ::testing::Test {
 protected:
  // Written, and read by torch::pickle_load's reader of whole archives.
  Named round_trip(const Named& tensors) {
    write_pt(disk_, "/a.pt", tensors);
    std::istringstream bytes(disk_.content("/a.pt"));
    caffe2::serialize::PyTorchStreamReader archive(&bytes);
    const c10::IValue value = torch::jit::readArchiveAndTensors("data", "", "data/", std::nullopt,
                                                                std::nullopt, std::nullopt, archive);
    Named read;
    for (const auto& item : value.toGenericDict()) {
      read.emplace_back(item.key().toStringRef(), item.value().toTensor());
    }
    return read;
  }
  void expect_round_trip(const Named& tensors) {
    const Named read = round_trip(tensors);
    ASSERT_EQ(read.size(), tensors.size());
    for (size_t i = 0; i < read.size(); ++i) {
      const auto& [name, tensor] = read[i];
      EXPECT_EQ(name, tensors[i].first);
      EXPECT_EQ(tensor.scalar_type(), tensors[i].second.scalar_type()) << name;
      EXPECT_EQ(tensor.sizes(), tensors[i].second.sizes()) << name;
      EXPECT_TRUE(tensor.is_contiguous()) << name;
      EXPECT_FALSE(tensor.requires_grad()) << name;
      EXPECT_TRUE(same_bytes(tensor, tensors[i].second.resolve_conj())) << name;
    }
  }
  MemoryFileSystem disk_;
};

TEST_F(PtFile, EveryTypeInTheGivenOrder) {
  Named tensors;
  for (const at::ScalarType type :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kByte, at::kChar, at::kShort, at::kInt,
        at::kLong, at::kBool, at::kComplexFloat, at::kComplexDouble}) {
    tensors.emplace_back(std::string("z.") + c10::toString(type), (torch::rand({3, 5}) * 50).to(type));
    tensors.emplace_back(std::string("a.") + c10::toString(type), torch::ones({}, type));
  }
  tensors.emplace_back("empty", torch::zeros({0, 7}));
  tensors.emplace_back("empty too", torch::zeros({0}, at::kLong));
  tensors.emplace_back("odd \"name\" \\ \n \xc3\xa9\xe4\xb8\xad", torch::tensor({-0.0F, 1e-45F}));
  tensors.emplace_back("", torch::tensor({std::nanf(""), HUGE_VALF}));
  expect_round_trip(tensors);
}

TEST_F(PtFile, ViewsAreWrittenContiguousAndNoLargerThanTheyAre) {
  const at::Tensor big = torch::rand({1000, 100});
  expect_round_trip({{"transposed", big.t().slice(0, 0, 3)},
                     {"slice", big[7]},
                     {"expanded", torch::rand({1, 4}).expand({3, 4})},
                     {"conjugated", torch::rand({4}, at::kComplexFloat).conj()},
                     {"parameter", torch::rand({2, 2}).requires_grad_()}});
  EXPECT_LT(disk_.content("/a.pt").size(), 100 * 1000U);
  // The same memory as two types, and in two orders: each is right, whichever comes first.
  const at::Tensor words = torch::rand({4, 4});
  expect_round_trip({{"float", words}, {"int", words.view(at::kInt)}, {"transposed", words.t()}});
  expect_round_trip({{"int", words.view(at::kInt)}, {"float", words}});
}

TEST_F(PtFile, SharedTensorsShareTheirStorage) {
  const at::Tensor weight = torch::rand({100, 100});
  const Named read = round_trip(
      {{"wte", weight}, {"other", torch::rand({2})}, {"head", weight}, {"view", weight.view({100, 100})}});
  ASSERT_EQ(read.size(), 4U);
  EXPECT_TRUE(read[2].second.is_alias_of(read[0].second));
  EXPECT_TRUE(read[3].second.is_alias_of(read[0].second));
  EXPECT_FALSE(read[1].second.is_alias_of(read[0].second));
  EXPECT_LT(disk_.content("/a.pt").size(), 45'000U);
}

TEST_F(PtFile, ManyTensors) {
  Named tensors;
  for (int i = 0; i < 1000; ++i) tensors.emplace_back("layer." + std::to_string(i), torch::full({3}, i));
  expect_round_trip(tensors);
  expect_round_trip({});
}

TEST_F(PtFile, EqualTensorsGiveEqualFiles) {
  const Named tensors{{"b", torch::rand({3})}, {"a", torch::rand({4})}};
  write_pt(disk_, "/a.pt", tensors);
  write_pt(disk_, "/b.pt", tensors);
  EXPECT_EQ(disk_.content("/a.pt"), disk_.content("/b.pt"));
}

TEST_F(PtFile, RefusesWhatTorchLoadWouldNotTake) {
  EXPECT_THAT(message_of<CheckpointError>(
                  [&] { write_pt(disk_, "/a.pt", {{"w8", torch::zeros({2}, at::kUInt16)}}); }),
              AllOf(HasSubstr("tensor w8"), HasSubstr("UInt16"), HasSubstr(".safetensors")));
  EXPECT_THAT(message_of<CheckpointError>([&] { write_pt(disk_, "/a.pt", {{"w\xff", torch::zeros({2})}}); }),
              HasSubstr("not UTF-8"));
  EXPECT_THROW(write_pt(disk_, "/a.pt", {{"w", torch::zeros({2})}, {"w", torch::zeros({2})}}), c10::Error);
  EXPECT_THROW(write_pt(disk_, "/a.pt", {{"w", at::Tensor()}}), c10::Error);
  EXPECT_EQ(disk_.num_files(), 0U);
}

TEST_F(PtFile, AFullDiskGivesOneErrorAndLeavesNothing) {
  const Named tensors{{"w", torch::rand({300, 300})}};
  write_pt(disk_, "/a.pt", tensors);
  const int64_t num_calls = disk_.num_calls();
  const std::string before = disk_.content("/a.pt");
  for (int64_t call = 0; call < num_calls; ++call) {
    MemoryFileSystem disk;
    disk.put("/a.pt", "old");
    disk.fail_call(call);
    const std::string message = message_of<CheckpointError>([&] { write_pt(disk, "/a.pt", tensors); });
    EXPECT_THAT(message, AllOf(HasSubstr(std::to_string(before.size()) + " bytes"), HasSubstr("make room"),
                               Not(HasSubstr("\n"))));
    EXPECT_EQ(disk.num_files(), 1U) << call;
    EXPECT_TRUE(disk.all_closed());
    // Only the last call, the folder's sync, comes after the new file is in its place.
    EXPECT_EQ(disk.content("/a.pt"), call + 1 == num_calls ? before : "old") << call;
  }
}

// The C++ half of test_pt_python.py: the tensors of in.safetensors, which Python wrote, go to out.pt.
TEST(PtFileInterop, ConvertsPythonsFile) {
  const char* const folder = std::getenv("GRADSTEP_INTEROP_DIR");
  if (folder == nullptr) GTEST_SKIP() << "run by test_pt_python.py";
  const SafetensorsFile file = read_safetensors(std::string(folder) + "/in.safetensors");
  write_pt(posix_file_system(), std::string(folder) + "/out.pt", file.tensors);
}

}  // namespace
}  // namespace gradstep::testing
