// FileSystem: the seam between gradstep and the disk. Every durable write goes through it, so tests can fail
// any call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gradstep {

// Each call throws std::system_error with the path in its message; none is retried except on EINTR.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // Opens for writing, truncated, mode 0666 & ~umask. Returns a descriptor for write_all, sync and
  // close_file.
  virtual int create(const std::string& path) = 0;
  virtual void write_all(int fd, std::string_view bytes, const std::string& path) = 0;
  virtual void sync(int fd, const std::string& path) = 0;
  virtual void close_file(int fd, const std::string& path) = 0;
  // Replaces `to` atomically. A folder takes what is in it along; then nothing may be at `to`.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void sync_dir(const std::string& path) = 0;
  // Makes a file durable that somebody else wrote.
  virtual void sync_file(const std::string& path) = 0;
  virtual void make_dirs(const std::string& path) = 0;
  // A file, or a folder with what is in it; nothing happens where there is neither.
  virtual void remove_all(const std::string& path) = 0;
  // Names (not paths) in a folder, sorted; empty where there is no such folder.
  virtual std::vector<std::string> list(const std::string& path) = 0;
  // Bytes a process of this user may still write there.
  virtual uint64_t free_bytes(const std::string& path) = 0;
};

// The disk itself. One object for the process; it has no state.
[[nodiscard]] FileSystem& posix_file_system();

}  // namespace gradstep
