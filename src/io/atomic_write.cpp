// no torch
// atomic_write and the file under it: temporary name, sync, rename, sync of the folder; nothing left behind
// on failure.
#include "io/atomic_write.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <exception>
#include <filesystem>
#include <thread>
#include <utility>

#include "io/atomic_file.h"
#include "io/io_error.h"

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

// The file that a path leads to over links, whether it is there or not.
std::string behind_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel's
  std::filesystem::path place = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(place, error); ++i) {
    const std::filesystem::path target = std::filesystem::read_symlink(place, error);
    if (error) break;
    place = target.is_absolute() ? target : place.parent_path() / target;
  }
  return place.string();
}

// A pipe is opened once somebody reads it; there is no waiting for ever.
int open_stream(const std::string& path) {
  constexpr int kMaxTries = 1000;
  for (int i = 1;; ++i) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0) return fd;
    if ((errno != ENXIO && errno != EINTR) || i == kMaxTries) throw_io_error(errno, "open for writing", path);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Into a device or a pipe, which keep their place.
void write_through(const std::string& path, const std::vector<std::string_view>& pieces) {
  const int fd = open_stream(path);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  try {
    for (const std::string_view piece : pieces) posix_file_system().write_all(fd, piece, path);
  } catch (...) {
    ::close(fd);
    throw;
  }
  posix_file_system().close_file(fd, path);
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
  const std::string place = behind_links(path);
  std::error_code ignored;
  const std::filesystem::file_type type = std::filesystem::status(place, ignored).type();
  if (type == std::filesystem::file_type::character || type == std::filesystem::file_type::fifo)
    return write_through(place, pieces);
  if (type == std::filesystem::file_type::block) throw_io_error(ENOTSUP, "write to the disk", place);
  AtomicFile file(file_system, place);
  for (const std::string_view piece : pieces) file.write(piece);
  file.commit();
}

void atomic_copy(FileSystem& file_system, const std::string& from, const std::string& to) {
  const int fd = ::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw_io_error(errno, "open", from);
  try {
    AtomicFile file(file_system, to);
    std::string piece(size_t{1} << 20, '\0');
    for (;;) {
      const ssize_t size = ::read(fd, piece.data(), piece.size());
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) throw_io_error(errno, "read", from);
      if (size == 0) break;
      file.write({piece.data(), static_cast<size_t>(size)});
    }
    file.commit();
  } catch (...) {
    ::close(fd);
    throw;
  }
  ::close(fd);
}

}  // namespace gradstep
