// IDX reader: checks the whole header against the file before it takes memory, then unpacks straight into the
// tensor.
#include "data/idx.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "data/missing.h"
#include "gradstep/base/error.h"
#include "io/byte_reader.h"
#include "io/file_kind.h"

namespace gradstep {
namespace {

constexpr size_t kMaxDims = 4;
constexpr uint32_t kUnsignedByte = 0x08;
constexpr int64_t kNumClasses = 10;

uint32_t big_endian(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

std::string hex(uint32_t value) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%08x", static_cast<unsigned>(value));
  return text.data();
}

std::string num_bytes(uint64_t count) { return std::to_string(count) + (count == 1 ? " byte" : " bytes"); }

// What a magic number says, for a reader who took one file for another.
std::string describe_magic(uint32_t magic) {
  if (magic == (kUnsignedByte << 8 | 1)) return hex(magic) + " (labels)";
  if (magic == (kUnsignedByte << 8 | 3)) return hex(magic) + " (pictures)";
  return hex(magic);
}

class IdxFile {
 public:
  IdxFile(const std::string& path, int64_t num_dims)
      : path_(path), num_dims_(static_cast<size_t>(num_dims)), reader_(path) {
    TORCH_CHECK(num_dims >= 1 && num_dims_ <= kMaxDims, "IDX: ", num_dims, " dimensions");
  }

  at::Tensor read() {
    const std::vector<int64_t> shape = read_header();
    const uint64_t wanted = content_size(shape);
    at::Tensor result = at::empty(shape, at::kByte);
    const size_t found = reader_.read(result.mutable_data_ptr<uint8_t>(), static_cast<size_t>(wanted));
    if (found < wanted) fail(header_size(), num_bytes(wanted) + " of items", num_bytes(found));
    unsigned char extra = 0;
    if (reader_.read(&extra, 1) != 0) fail(header_size() + wanted, "the end of the file", "more bytes");
    return result;
  }

 private:
  [[nodiscard]] size_t header_size() const { return 4 + 4 * num_dims_; }

  std::vector<int64_t> read_header() {
    std::array<unsigned char, 4 + 4 * kMaxDims> header{};
    const size_t found = reader_.read(header.data(), header_size());
    if (found == 0) fail(0, "an IDX file", "an empty file");
    if (found < 4) fail(0, "a magic number of 4 bytes", num_bytes(found));
    const uint32_t magic = big_endian(header.data());
    const uint32_t wanted = kUnsignedByte << 8 | static_cast<uint32_t>(num_dims_);
    if (magic != wanted) {
      const std::string kind = file_kind_at(path_);
      const bool says_more = !kind.empty() && !reader_.is_gzip();
      fail(0, "magic number " + describe_magic(wanted),
           describe_magic(magic) + (says_more ? ", " + kind : ""));
    }
    if (found < header_size()) fail(4, num_bytes(4 * num_dims_) + " of dimensions", num_bytes(found - 4));
    std::vector<int64_t> shape;
    for (size_t dim = 0; dim < num_dims_; ++dim) {
      const size_t offset = 4 + 4 * dim;
      const uint32_t size = big_endian(header.data() + offset);
      if (size == 0) fail(offset, "a dimension of at least 1", "0");
      shape.push_back(size);
    }
    return shape;
  }

  // The header's claim in bytes, refused where the file cannot hold so many.
  [[nodiscard]] uint64_t content_size(const std::vector<int64_t>& shape) const {
    uint64_t wanted = 1;
    bool overflows = false;
    for (const int64_t size : shape) {
      overflows |= __builtin_mul_overflow(wanted, static_cast<uint64_t>(size), &wanted);
    }
    const uint64_t possible =
        reader_.max_content_size() - std::min<uint64_t>(reader_.max_content_size(), header_size());
    if (overflows) fail(4, "dimensions of a size that a file can have", "a product beyond 64 bits");
    if (reader_.is_gzip() && wanted > possible) {
      fail(header_size(), num_bytes(wanted) + " of items",
           "a packed file that can hold " + num_bytes(possible) + " at most");
    }
    if (!reader_.is_gzip() && wanted > possible)
      fail(header_size(), num_bytes(wanted) + " of items", num_bytes(possible));
    if (!reader_.is_gzip() && wanted < possible) {
      fail(header_size() + wanted, "the end of the file", num_bytes(possible - wanted) + " more");
    }
    return wanted;
  }

  [[noreturn]] void fail(uint64_t offset, const std::string& expected, const std::string& found) const {
    throw DataError(path_ + ": at byte " + std::to_string(offset) +
                    (reader_.is_gzip() ? " of the unpacked data" : "") + ": expected " + expected +
                    ", found " + found + "; fetch the file again or correct the folder");
  }

  const std::string path_;
  const size_t num_dims_;
  ByteReader reader_;
};

// The file of that name, plain or packed, as the original page, torchvision and others name and place it.
std::string find_file(const std::string& name, const std::string& data_dir, const std::string& stem) {
  std::string with_point = stem;  // train-images.idx3-ubyte
  with_point.replace(with_point.rfind("-idx"), 1, ".");
  for (const char* folder : {"", "raw", "MNIST/raw", "FashionMNIST/raw"}) {
    for (const std::string& spelling : {stem, with_point}) {
      for (const char* ending : {"", ".gz"}) {
        const std::filesystem::path path = std::filesystem::path(data_dir) / folder / (spelling + ending);
        if (is_data_file(name, path)) return path.string();
      }
    }
  }
  throw missing_data(name, data_dir, stem + "[.gz]");
}

at::Tensor read_labels(const std::string& path) {
  const at::Tensor bytes = read_idx(path, 1);
  at::Tensor labels = at::empty(bytes.sizes(), at::kLong);
  const uint8_t* const from = bytes.const_data_ptr<uint8_t>();
  int64_t* const to = labels.mutable_data_ptr<int64_t>();
  for (int64_t row = 0; row < bytes.numel(); ++row) {
    to[row] = from[row];
    if (to[row] >= kNumClasses) {
      throw DataError(path + ": row " + std::to_string(row) + ": expected a label from 0 to " +
                      std::to_string(kNumClasses - 1) + ", found " + std::to_string(to[row]) +
                      "; the file is damaged or of another data set, fetch it again");
    }
  }
  return labels;
}

}  // namespace

at::Tensor read_idx(const std::string& path, int64_t num_dims) { return IdxFile(path, num_dims).read(); }

std::shared_ptr<const Dataset> load_idx_dataset(const std::string& name, const std::string& data_dir,
                                                Split split) {
  const std::string prefix = split == Split::kTrain ? "train" : "t10k";
  const std::string image_path = find_file(name, data_dir, prefix + "-images-idx3-ubyte");
  const std::string label_path = find_file(name, data_dir, prefix + "-labels-idx1-ubyte");
  at::Tensor labels = read_labels(label_path);
  at::Tensor images = read_idx(image_path, 3);
  if (images.size(0) != labels.size(0)) {
    throw DataError(label_path + ": at byte 4: expected " + std::to_string(images.size(0)) +
                    " labels, one for each picture of " + image_path + ", found " +
                    std::to_string(labels.size(0)) + "; fetch both files again");
  }
  DatasetSpec spec{.name = name,
                   .input_shape = {images.size(1), images.size(2)},
                   .num_classes = kNumClasses,
                   .kind = SampleKind::kImages};
  return std::make_shared<TensorDataset>(std::move(spec), std::move(images), std::move(labels));
}

}  // namespace gradstep
