// CIFAR-10 reader: records of a label and three colour planes, read in one piece each file.
#include "data/cifar.h"

#include <ATen/ATen.h>

#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "data/missing.h"
#include "gradstep/base/error.h"
#include "io/byte_reader.h"
#include "io/file_kind.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPictureBytes = 3 * 32 * 32;
constexpr size_t kRecordBytes = 1 + kPictureBytes;
constexpr int64_t kNumClasses = 10;
constexpr const char* kSubfolder = "cifar-10-batches-bin";

[[noreturn]] void fail(const std::string& path, uint64_t offset, const std::string& expected,
                       const std::string& found) {
  throw DataError(path + ": at byte " + std::to_string(offset) + ": expected " + expected + ", found " +
                  found + "; run 'gradstep fetch cifar10' again or correct the folder");
}

std::vector<std::string> find_files(const std::string& data_dir, Split split) {
  std::vector<std::string> names = {"test_batch.bin"};
  if (split == Split::kTrain) {
    names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
             "data_batch_5.bin"};
  }
  std::error_code ignored;
  const fs::path inner = fs::path(data_dir) / kSubfolder;
  const fs::path folder = fs::is_directory(inner, ignored) ? inner : fs::path(data_dir);
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    paths.push_back((folder / name).string());
    if (!is_data_file("cifar10", paths.back())) throw missing_data("cifar10", data_dir, name);
  }
  return paths;
}

// Records of one file, still with their labels.
std::vector<unsigned char> read_records(const std::string& path) {
  ByteReader reader(path);
  if (reader.is_gzip()) fail(path, 0, "records of a label and a picture", "gzip data (unpack it)");
  const uint64_t size = reader.file_size();
  if (size == 0) fail(path, 0, "records of 3073 bytes", "an empty file");
  if (size % kRecordBytes != 0) {
    if (const std::string kind = file_kind_at(path); !kind.empty())
      fail(path, 0, "records of 3073 bytes", kind);
    fail(path, size - size % kRecordBytes, "a record of 3073 bytes",
         std::to_string(size % kRecordBytes) + " bytes");
  }
  std::vector<unsigned char> records(static_cast<size_t>(size));
  const size_t found = reader.read(records.data(), records.size());
  if (found != size) fail(path, found, std::to_string(size) + " bytes", std::to_string(found));
  return records;
}

}  // namespace

std::shared_ptr<const Dataset> load_cifar10(const std::string& data_dir, Split split) {
  const std::vector<std::string> paths = find_files(data_dir, split);
  std::vector<std::vector<unsigned char>> files;
  int64_t num_records = 0;
  for (const std::string& path : paths) {
    files.push_back(read_records(path));
    num_records += static_cast<int64_t>(files.back().size() / kRecordBytes);
  }
  at::Tensor pictures = at::empty({num_records, 3, 32, 32}, at::kByte);
  at::Tensor labels = at::empty({num_records}, at::kLong);
  uint8_t* picture = pictures.mutable_data_ptr<uint8_t>();
  int64_t* label = labels.mutable_data_ptr<int64_t>();
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t offset = 0; offset < files[i].size(); offset += kRecordBytes) {
      *label = files[i][offset];
      if (*label >= kNumClasses) {
        fail(paths[i], offset, "a label from 0 to 9 (row " + std::to_string(offset / kRecordBytes) + ")",
             std::to_string(*label));
      }
      std::memcpy(picture, files[i].data() + offset + 1, kPictureBytes);
      picture += kPictureBytes;
      ++label;
    }
  }
  DatasetSpec spec{
      .name = "cifar10", .input_shape = {3, 32, 32}, .num_classes = kNumClasses, .kind = SampleKind::kImages};
  return std::make_shared<TensorDataset>(std::move(spec), std::move(pictures), std::move(labels));
}

}  // namespace gradstep
