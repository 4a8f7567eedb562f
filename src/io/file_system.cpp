// The disk itself: POSIX calls, each checked, retried on EINTR, and named in its error.
// no torch
#include "gradstep/io/file_system.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "io/io_error.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;

// Repeats a call that a signal interrupted.
template <typename Call>
auto retry(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

class PosixFileSystem final : public FileSystem {
 public:
  int create(const std::string& path) override {
    const int fd =
        retry([&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); });
    if (fd < 0) throw_io_error(errno, "create", path);
    return fd;
  }

  void write_all(int fd, std::string_view bytes, const std::string& path) override {
    while (!bytes.empty()) {
      const ssize_t count = retry([&] { return ::write(fd, bytes.data(), bytes.size()); });
      if (count < 0) throw_io_error(errno, "write", path);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }

  void sync(int fd, const std::string& path) override {
    if (retry([&] { return ::fsync(fd); }) != 0) throw_io_error(errno, "sync", path);
  }

  void close_file(int fd, const std::string& path) override {
    // Linux gives the descriptor back whatever close returns; after EINTR it must not be closed again.
    if (::close(fd) != 0 && errno != EINTR) throw_io_error(errno, "close", path);
  }

  void rename(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) != 0) throw_io_error(errno, "rename " + from + " to", to);
  }

  void sync_dir(const std::string& path) override {
    const int fd = retry([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) throw_io_error(errno, "open folder", path);
    const int result = retry([&] { return ::fsync(fd); });
    const int error = errno;
    ::close(fd);
    // Some network file systems cannot sync a folder and say EINVAL; there is nothing more to ask of them.
    if (result != 0 && error != EINVAL) throw_io_error(error, "sync folder", path);
  }

  void sync_file(const std::string& path) override {
    const int fd = retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
    if (fd < 0) throw_io_error(errno, "open", path);
    const int result = retry([&] { return ::fsync(fd); });
    const int error = errno;
    ::close(fd);
    if (result != 0) throw_io_error(error, "sync", path);
  }

  void make_dirs(const std::string& path) override {
    std::error_code error;
    fs::create_directories(path, error);
    if (error) throw std::system_error(error, "cannot make folder " + path);
  }

  void make_dir(const std::string& path) override {
    std::error_code error;
    fs::create_directory(path, error);
    if (error) throw std::system_error(error, "cannot make folder " + path);
  }

  void remove_all(const std::string& path) override {
    std::error_code error;
    fs::remove_all(path, error);
    if (error) throw std::system_error(error, "cannot remove " + path);
  }

  std::vector<std::string> list(const std::string& path) override {
    std::error_code error;
    std::vector<std::string> names;
    fs::directory_iterator entries(path, error);
    if (error == std::errc::no_such_file_or_directory) return names;
    if (error) throw std::system_error(error, "cannot list " + path);
    while (entries != fs::directory_iterator()) {
      names.push_back(entries->path().filename().string());
      entries.increment(error);
      if (error) throw std::system_error(error, "cannot list " + path);
    }
    std::ranges::sort(names);
    return names;
  }

  uint64_t free_bytes(const std::string& path) override {
    struct statvfs status{};
    if (retry([&] { return ::statvfs(path.c_str(), &status); }) != 0)
      throw_io_error(errno, "ask for the free space of", path);
    return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
  }
};

}  // namespace

FileSystem& posix_file_system() {
  static PosixFileSystem file_system;
  return file_system;
}

}  // namespace gradstep
