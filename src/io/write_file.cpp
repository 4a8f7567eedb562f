// no torch
// write_file: pieces go to the hash and to the disk in parts that fit a cache.
#include "io/write_file.h"

#include <exception>
#include <utility>

#include "io/hash.h"

namespace gradstep {
namespace {

constexpr size_t kPartBytes = size_t{1} << 20;

class OpenFile {
 public:
  OpenFile(FileSystem& file_system, const std::string& path)
      : file_system_(file_system), path_(path), fd_(file_system.create(path)) {}
  ~OpenFile() {
    if (fd_ < 0) return;
    try {
      file_system_.close_file(fd_, path_);
    } catch (const std::exception&) {
      // The first error is on its way.
    }
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  void write(std::string_view bytes) { file_system_.write_all(fd_, bytes, path_); }
  void finish() {
    file_system_.sync(fd_, path_);
    file_system_.close_file(std::exchange(fd_, -1), path_);
  }

 private:
  FileSystem& file_system_;
  const std::string& path_;
  int fd_;
};

}  // namespace

FileDigest write_file(FileSystem& file_system, const std::string& path,
                      const std::vector<std::string_view>& pieces) {
  OpenFile file(file_system, path);
  Xxh3 hash;
  FileDigest digest;
  for (std::string_view piece : pieces) {
    digest.bytes += piece.size();
    while (!piece.empty()) {
      const std::string_view part = piece.substr(0, kPartBytes);
      hash.update(part);
      file.write(part);
      piece.remove_prefix(part.size());
    }
  }
  file.finish();
  digest.xxh3 = hash.hex();
  return digest;
}

}  // namespace gradstep
