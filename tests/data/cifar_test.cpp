// CIFAR-10: records are taken apart right, and broken files are refused with place and cure.
#include "data/cifar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "support/archives.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;
using testing::ScratchDir;

std::string record(int label, int first_pixel) {
  std::string bytes(1, static_cast<char>(label));
  for (int i = 0; i < 3072; ++i) bytes += static_cast<char>(first_pixel + i);
  return bytes;
}

class CifarFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 1; i <= 5; ++i) {
      dir_.write("data_batch_" + std::to_string(i) + ".bin", record(i, i) + record(i + 1, 10 * i));
    }
    dir_.write("test_batch.bin", record(9, 3));
  }
  std::string refused_test_batch(const std::string& bytes) {
    dir_.write("test_batch.bin", bytes);
    return message_of<DataError>([&] { (void)load_cifar10(dir_.path(), Split::kEval); });
  }
  ScratchDir dir_;
};

TEST_F(CifarFolder, ReadsAllRecords) {
  const auto train = load_dataset("cifar10", dir_.path(), Split::kTrain);
  EXPECT_EQ(train->size(), 10);
  EXPECT_EQ(train->spec().input_shape, (std::vector<int64_t>{3, 32, 32}));
  const Batch all = train->gather(torch::arange(10));
  EXPECT_TRUE(torch::equal(all.targets, torch::tensor({1, 2, 2, 3, 3, 4, 4, 5, 5, 6}, at::kLong)));
  EXPECT_TRUE(torch::equal(all.inputs[5], (torch::arange(3072) + 30).to(at::kByte).reshape({3, 32, 32})));
  EXPECT_EQ(load_cifar10(dir_.path(), Split::kEval)->size(), 1);
}

TEST_F(CifarFolder, FindsTheArchivesOwnFolder) {
  const ScratchDir outer;
  std::filesystem::create_directory(outer.file("cifar-10-batches-bin"));
  outer.write("cifar-10-batches-bin/test_batch.bin", record(0, 0) + record(1, 1));
  EXPECT_EQ(load_cifar10(outer.path(), Split::kEval)->size(), 2);
}

TEST_F(CifarFolder, RefusesBrokenFiles) {
  EXPECT_THAT(refused_test_batch(""), HasSubstr("found an empty file"));
  EXPECT_THAT(refused_test_batch(record(0, 0) + "ab"),
              AllOf(HasSubstr(dir_.file("test_batch.bin")),
                    HasSubstr("at byte 3073: expected a record of 3073 bytes, found 2 bytes")));
  EXPECT_THAT(refused_test_batch(record(0, 0).substr(0, 3072)), HasSubstr("found 3072 bytes"));
  EXPECT_THAT(refused_test_batch(record(0, 0) + record(10, 0)),
              HasSubstr("at byte 3073: expected a label from 0 to 9 (row 1), found 10"));
  EXPECT_THAT(refused_test_batch(testing::gzip(record(0, 0))), HasSubstr("found gzip data"));
}

TEST_F(CifarFolder, MissingFileNamesTheCure) {
  std::filesystem::remove(dir_.file("data_batch_3.bin"));
  EXPECT_THAT(message_of<DataError>([&] { (void)load_cifar10(dir_.path(), Split::kTrain); }),
              AllOf(HasSubstr("data_batch_3.bin"), HasSubstr("gradstep fetch cifar10")));
}

}  // namespace
}  // namespace gradstep
