// no torch
// atomic_write and the file under it: temporary name, sync, rename, sync of the folder; nothing left behind
// on failure.
#include "io/atomic_write.h"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <utility>

#include "io/atomic_file.h"

namespace gradstep {
namespace {

std::string temporary_path(const std::filesystem::path& path) {
  static std::atomic<unsigned> num_calls{0};
  const std::string name = "." + path.filename().string() + ".tmp-" + std::to_string(::getpid()) + "-" +
                           std::to_string(num_calls.fetch_add(1));
  return (path.parent_path() / name).string();
}

std::string folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path().string() : ".";
}

}  // namespace

AtomicFile::AtomicFile(FileSystem& file_system, const std::string& path)
    : file_system_(file_system),
      path_(path),
      temporary_path_(temporary_path(path)),
      fd_(file_system_.create(temporary_path_)) {}

AtomicFile::~AtomicFile() {
  if (in_place_) return;
  // The first error is on its way; a second one here could not say anything more useful.
  try {
    if (fd_ >= 0) file_system_.close_file(std::exchange(fd_, -1), temporary_path_);
  } catch (const std::exception&) {
  }
  try {
    file_system_.remove_all(temporary_path_);
  } catch (const std::exception&) {
  }
}

void AtomicFile::write(std::string_view bytes) { file_system_.write_all(fd_, bytes, temporary_path_); }

void AtomicFile::commit() {
  file_system_.sync(fd_, temporary_path_);
  file_system_.close_file(std::exchange(fd_, -1), temporary_path_);
  file_system_.rename(temporary_path_, path_);
  in_place_ = true;
  file_system_.sync_dir(folder_of(path_));
}

void atomic_write(FileSystem& file_system, const std::string& path,
                  const std::vector<std::string_view>& pieces) {
  AtomicFile file(file_system, path);
  for (const std::string_view piece : pieces) file.write(piece);
  file.commit();
}

}  // namespace gradstep
