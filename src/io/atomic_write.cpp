// atomic_write: temporary file, sync, rename, sync of the folder; nothing left behind when one of them fails.
// no torch
#include "gradstep/io/atomic_write.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <utility>

namespace gradstep {
namespace {

// A temporary file that is removed unless it was renamed into place.
class TemporaryFile {
 public:
  TemporaryFile(FileSystem& file_system, std::string path)
      : file_system_(file_system), path_(std::move(path)), fd_(file_system_.create(path_)) {}
  ~TemporaryFile() {
    if (in_place_) return;
    // The first error is on its way; a second one here could not say anything more useful.
    try {
      if (fd_ >= 0) file_system_.close_file(std::exchange(fd_, -1), path_);
    } catch (const std::exception&) {
    }
    try {
      file_system_.remove_all(path_);
    } catch (const std::exception&) {
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::string_view bytes) { file_system_.write_all(fd_, bytes, path_); }
  void sync_and_close() {
    file_system_.sync(fd_, path_);
    file_system_.close_file(std::exchange(fd_, -1), path_);
  }
  void rename_to(const std::string& path) {
    file_system_.rename(path_, path);
    in_place_ = true;
  }

 private:
  FileSystem& file_system_;
  const std::string path_;
  int fd_;
  bool in_place_ = false;
};

// Beside `path`, hidden, and of no other process or call.
std::string temporary_path(const std::filesystem::path& path) {
  static std::atomic<unsigned> num_calls{0};
  const std::string name = "." + path.filename().string() + ".tmp-" + std::to_string(::getpid()) + "-" +
                           std::to_string(num_calls.fetch_add(1));
  return (path.parent_path() / name).string();
}

}  // namespace

void atomic_write(FileSystem& file_system, const std::string& path, const std::vector<std::string_view>& pieces) {
  const std::filesystem::path target(path);
  TemporaryFile temporary(file_system, temporary_path(target));
  for (const std::string_view piece : pieces) temporary.write(piece);
  temporary.sync_and_close();
  temporary.rename_to(path);
  file_system.sync_dir(target.has_parent_path() ? target.parent_path().string() : ".");
}

}  // namespace gradstep
