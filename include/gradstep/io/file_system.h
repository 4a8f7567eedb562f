// FileSystem: the seam between gradstep and the disk. Every durable write goes through it, so tests can fail
// any call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gradstep {

/// The disk. Programs use posix_file_system(); a test derives its own. Each call throws std::system_error
/// with the path in its message. None is retried, except after EINTR.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// Opens a file for writing, truncated, with mode 0666 & ~umask. Returns a descriptor for write_all(),
  /// sync() and close_file().
  virtual int create(const std::string& path) = 0;
  /// Writes all of `bytes` to the descriptor. `path` is only for the message of an error, here and in the two
  /// calls below.
  virtual void write_all(int fd, std::string_view bytes, const std::string& path) = 0;
  /// Makes what was written to the descriptor durable (fsync).
  virtual void sync(int fd, const std::string& path) = 0;
  /// Closes the descriptor.
  virtual void close_file(int fd, const std::string& path) = 0;
  /// Renames `from` to `to` and replaces `to` atomically. A folder is moved with its content; then nothing
  /// may be at `to`.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// Makes the names in a folder durable, such as after a rename.
  virtual void sync_dir(const std::string& path) = 0;
  /// Makes a file durable that somebody else wrote.
  virtual void sync_file(const std::string& path) = 0;
  /// Makes a folder and all folders above it, unless they exist.
  virtual void make_dirs(const std::string& path) = 0;
  /// Makes a folder in one that exists, unless it exists.
  virtual void make_dir(const std::string& path) = 0;
  /// Removes a file, or a folder with its content. Does nothing if nothing is there.
  virtual void remove_all(const std::string& path) = 0;
  /// The names (not paths) in a folder, sorted. Empty if there is no such folder.
  virtual std::vector<std::string> list(const std::string& path) = 0;
  /// Bytes that a process of this user may still write on the disk of `path`.
  virtual uint64_t free_bytes(const std::string& path) = 0;
};

/// The disk itself, through POSIX calls. There is one object for the process, without state. Threads: any
/// number may use it at once.
[[nodiscard]] FileSystem& posix_file_system();

}  // namespace gradstep
