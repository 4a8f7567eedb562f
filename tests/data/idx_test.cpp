// IDX: what is right is read byte by byte, plain or packed; every broken file is refused with place and cure
// (H4, H5, H6).
#include "data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "support/archives.h"
#include "support/message_of.h"
#include "support/scratch_dir.h"

namespace gradstep {
namespace {

using ::testing::AllOf;
using testing::gzip;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using testing::ScratchDir;

std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string header(uint32_t magic, std::initializer_list<uint32_t> sizes) {
  std::string bytes = big_endian(magic);
  for (const uint32_t size : sizes) bytes += big_endian(size);
  return bytes;
}

std::string counting(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 7);
  return bytes;
}

std::string images(uint32_t count = 5) { return header(0x803, {count, 3, 2}) + counting(size_t{count} * 6); }
std::string labels(const std::string& values) {
  return header(0x801, {static_cast<uint32_t>(values.size())}) + values;
}

// A folder with a small data set whose four files can be replaced.
class IdxFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_.write("train-images-idx3-ubyte", images(5));
    dir_.write("train-labels-idx1-ubyte", labels(std::string("\0\1\2\3\11", 5)));
    dir_.write("t10k-images-idx3-ubyte.gz", gzip(images(2)));
    dir_.write("t10k-labels-idx1-ubyte.gz", gzip(labels("\4\5")));
  }
  // What loading says, which must be one line with the file's path, and the cure.
  std::string refusal(const std::string& file) {
    const std::string message =
        message_of<DataError>([&] { (void)load_idx_dataset("mnist", dir_.path(), Split::kTrain); });
    EXPECT_THAT(message, AllOf(HasSubstr(dir_.file(file) + ": "), HasSubstr("expected "), HasSubstr("found "),
                               HasSubstr("fetch"), Not(HasSubstr("\n"))));
    return message;
  }
  std::string refused_images(const std::string& bytes) {
    dir_.write("train-images-idx3-ubyte", bytes);
    return refusal("train-images-idx3-ubyte");
  }
  ScratchDir dir_;
};

TEST_F(IdxFolder, ReadsPlainFiles) {
  const auto dataset = load_idx_dataset("mnist", dir_.path(), Split::kTrain);
  EXPECT_EQ(dataset->size(), 5);
  EXPECT_EQ(dataset->spec().name, "mnist");
  EXPECT_EQ(dataset->spec().input_shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(dataset->spec().num_classes, 10);
  const Batch batch = dataset->gather(torch::arange(5));
  EXPECT_TRUE(torch::equal(batch.inputs, (torch::arange(30) * 7).to(at::kByte).reshape({5, 3, 2})));
  EXPECT_TRUE(torch::equal(batch.targets, torch::tensor({0, 1, 2, 3, 9}, at::kLong)));
}

TEST_F(IdxFolder, ReadsPackedFiles) {
  const auto dataset = load_idx_dataset("mnist", dir_.path(), Split::kEval);
  const Batch batch = dataset->gather(torch::arange(2));
  EXPECT_TRUE(torch::equal(batch.inputs, (torch::arange(12) * 7).to(at::kByte).reshape({2, 3, 2})));
  EXPECT_TRUE(torch::equal(batch.targets, torch::tensor({4, 5}, at::kLong)));
}

// gzip is told by its first bytes: wrong names do no harm. Larger than any buffer inside, in two members.
TEST_F(IdxFolder, PackedContentUnderAPlainName) {
  const std::string whole = header(0x803, {1000, 28, 28}) + counting(784000);
  const std::string path = dir_.write(
      "big", gzip(std::string_view(whole).substr(0, 500001)) + gzip(std::string_view(whole).substr(500001)));
  EXPECT_TRUE(
      torch::equal(read_idx(path, 3), (torch::arange(784000) * 7).to(at::kByte).reshape({1000, 28, 28})));
}

TEST_F(IdxFolder, H4Empty) {
  EXPECT_THAT(refused_images(""), HasSubstr("at byte 0: expected an IDX file, found an empty file"));
}

TEST_F(IdxFolder, H4ThreeBytes) {
  EXPECT_THAT(refused_images(std::string("\0\0\x08", 3)),
              HasSubstr("at byte 0: expected a magic number of 4 bytes, found 3 bytes"));
}

TEST_F(IdxFolder, H4HeaderCutShort) {
  EXPECT_THAT(refused_images(images().substr(0, 10)),
              HasSubstr("at byte 4: expected 12 bytes of dimensions, found 6 bytes"));
}

TEST_F(IdxFolder, H4HeaderOnly) {
  EXPECT_THAT(refused_images(images().substr(0, 16)),
              HasSubstr("at byte 16: expected 30 bytes of items, found 0 bytes"));
}

TEST_F(IdxFolder, H4OneByteShort) {
  EXPECT_THAT(refused_images(images().substr(0, 45)),
              HasSubstr("at byte 16: expected 30 bytes of items, found 29 bytes"));
  EXPECT_THAT(refused_images(gzip(images().substr(0, 45))),
              HasSubstr("at byte 16 of the unpacked data: expected 30 bytes of items, found 29 bytes"));
}

TEST_F(IdxFolder, H4OneByteLong) {
  EXPECT_THAT(refused_images(images() + "x"),
              HasSubstr("at byte 46: expected the end of the file, found 1 byte more"));
  EXPECT_THAT(refused_images(gzip(images() + "x")),
              HasSubstr("at byte 46 of the unpacked data: expected the end of the file, found more bytes"));
}

TEST_F(IdxFolder, H4WrongMagic) {
  EXPECT_THAT(refused_images(header(0xd03, {5, 3, 2}) + counting(30)),
              HasSubstr("at byte 0: expected magic number 0x00000803 (pictures), found 0x00000d03"));
}

TEST_F(IdxFolder, H4LabelFileAsImages) {
  EXPECT_THAT(refused_images(labels("\1\2\3\4\5")),
              HasSubstr("expected magic number 0x00000803 (pictures), found 0x00000801 (labels)"));
  EXPECT_THAT(refused_images(gzip(labels("\1\2\3\4\5"))), HasSubstr("found 0x00000801 (labels)"));
}

TEST_F(IdxFolder, H4CountsThatDiffer) {
  dir_.write("train-labels-idx1-ubyte", labels("\1\2\3\4"));
  EXPECT_THAT(refusal("train-labels-idx1-ubyte"),
              HasSubstr("at byte 4: expected 5 labels, one for each picture of " +
                        dir_.file("train-images-idx3-ubyte") + ", found 4"));
}

TEST_F(IdxFolder, H4NoItems) {
  EXPECT_THAT(refused_images(header(0x803, {0, 28, 28})),
              HasSubstr("at byte 4: expected a dimension of at least 1, found 0"));
}

// Every length of a packed file but the whole one.
TEST_F(IdxFolder, H4TruncatedGzip) {
  const std::string packed = gzip(images());
  for (size_t size = 2; size < packed.size(); ++size) {
    EXPECT_THAT(refused_images(packed.substr(0, size)),
                HasSubstr("at byte " + std::to_string(size) +
                          " of the packed file: expected more gzip data, found the end"));
  }
  refused_images(packed.substr(0, 1));
}

// Every byte of a packed file in turn, but those of the gzip header that carry no content (time, system,
// level).
TEST_F(IdxFolder, H4CorruptGzip) {
  const std::string packed = gzip(images());
  for (size_t at = 0; at < packed.size(); ++at) {
    if (at >= 4 && at < 10) continue;
    std::string broken = packed;
    broken[at] = static_cast<char>(broken[at] ^ 0x55);
    refused_images(broken);
  }
}

TEST_F(IdxFolder, H4BytesBehindGzip) {
  EXPECT_THAT(refused_images(gzip(images()) + "rest"),
              HasSubstr("expected the end of the file, found bytes that are not gzip"));
}

// A header that claims more than the file can hold costs no memory: the claims are 16 EiB, 64 GiB and 2^64
// bytes and more.
TEST_F(IdxFolder, H4HostileHeader) {
  EXPECT_THAT(refused_images(header(0x803, {0xffffffff, 0xffffffff, 1}) + counting(30)),
              HasSubstr("at byte 16"));
  EXPECT_THAT(refused_images(gzip(header(0x803, {0x10000000, 16, 16}) + counting(30))),
              HasSubstr("can hold"));
  EXPECT_THAT(refused_images(header(0x803, {0xffffffff, 0xffffffff, 0xffffffff})),
              HasSubstr("beyond 64 bits"));
}

TEST_F(IdxFolder, H5WrongFolderIsOneLineWithTheCure) {
  std::string message =
      message_of<DataError>([] { (void)load_dataset("mnist", "/no/such/folder", Split::kTrain); });
  EXPECT_THAT(message, AllOf(HasSubstr("there is no folder /no/such/folder"),
                             HasSubstr("gradstep fetch mnist"), Not(HasSubstr("\n"))));
  const ScratchDir empty;
  message = message_of<DataError>([&] { (void)load_dataset("fashion-mnist", empty.path(), Split::kEval); });
  EXPECT_THAT(message, AllOf(HasSubstr(empty.path() + " has no file t10k-images-idx3-ubyte"),
                             HasSubstr("apt-get install dataset-fashion-mnist"),
                             HasSubstr("gradstep fetch fashion-mnist")));
}

TEST_F(IdxFolder, H5FolderInPlaceOfAFile) {
  const ScratchDir dir;
  std::filesystem::create_directory(dir.file("train-images-idx3-ubyte"));
  dir.write("train-labels-idx1-ubyte", labels("\1"));
  EXPECT_THROW((void)load_idx_dataset("mnist", dir.path(), Split::kTrain), DataError);
}

TEST_F(IdxFolder, H5PipeInPlaceOfAFileDoesNotHold) {
  const std::string path = dir_.file("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(message_of<DataError>([&] { (void)read_idx(path, 3); }), HasSubstr(path + ": expected a file"));
}

TEST_F(IdxFolder, H6LabelOfNoClass) {
  for (const char bad : {'\12', '\377'}) {
    dir_.write("train-labels-idx1-ubyte", labels(std::string("\1\2\3") + bad + "\5"));
    EXPECT_THAT(refusal("train-labels-idx1-ubyte"), HasSubstr("row 3: expected a label from 0 to 9, found "));
  }
}

TEST(Datasets, UnknownNameNamesTheNearest) {
  EXPECT_THAT(message_of<ConfigError>([] { (void)load_dataset("fashon-mnist", "", Split::kTrain); }),
              HasSubstr("did you mean fashion-mnist?"));
  EXPECT_THAT(message_of<ConfigError>([] { (void)load_dataset("cifar", "", Split::kTrain); }),
              HasSubstr("cifar10?"));
}

TEST(Datasets, DefaultFolders) {
  EXPECT_EQ(default_data_dir("mnist"), "data/mnist");
  EXPECT_EQ(default_data_dir("cifar10"), "data/cifar10");
  const bool installed = std::filesystem::is_directory("/usr/share/datasets/fashion-mnist");
  EXPECT_EQ(default_data_dir("fashion-mnist"),
            installed ? "/usr/share/datasets/fashion-mnist" : "data/fashion-mnist");
}

// The real thing, where Debian's package is installed: counts of each class and two pixel sums.
TEST(Datasets, DebiansFashionMnist) {
  if (default_data_dir("fashion-mnist").starts_with("data/"))
    GTEST_SKIP() << "dataset-fashion-mnist is not installed";
  for (const auto& [split, size, pixel_sum] :
       {std::tuple{Split::kTrain, int64_t{60000}, int64_t{3431114169}},
        std::tuple{Split::kEval, int64_t{10000}, int64_t{573469082}}}) {
    const auto dataset = load_dataset("fashion-mnist", "", split);
    ASSERT_EQ(dataset->size(), size);
    const Batch all = dataset->gather(torch::arange(size));
    EXPECT_TRUE(torch::equal(torch::bincount(all.targets), torch::full({10}, size / 10, at::kLong)));
    EXPECT_EQ(all.inputs.sum(at::kLong).item<int64_t>(), pixel_sum);
  }
}

}  // namespace
}  // namespace gradstep
