// AppendFile: POSIX calls, each checked.
// no torch
#include "report/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "io/io_error.h"

namespace gradstep {

namespace {

int open_for_append(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd == -1) throw_io_error(errno, "open", path);
  return fd;
}

std::pair<uint64_t, uint64_t> folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  struct stat status{};
  if (stat(folder.empty() ? "." : folder.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

}  // namespace

AppendFile::AppendFile(std::string path)
    : path_(std::move(path)), fd_(open_for_append(path_)), folder_(folder_of(path_)) {
  try {
    struct stat status{};
    if (fstat(fd_, &status) != 0) throw_io_error(errno, "read", path_);
    if (S_ISFIFO(status.st_mode))
      throw_io_error(ESPIPE, "append to the pipe", path_);  // would wait for readers
    cut_partial_line();
  } catch (...) {
    close(fd_);
    throw;
  }
}

AppendFile::~AppendFile() { close(fd_); }

void AppendFile::cut_partial_line() {
  struct stat status{};
  if (fstat(fd_, &status) != 0) throw_io_error(errno, "read", path_);
  if (!S_ISREG(status.st_mode)) return;
  off_t end = status.st_size;
  char block[4096];
  while (end > 0) {
    const off_t start = std::max<off_t>(0, end - static_cast<off_t>(sizeof block));
    const ssize_t size = pread(fd_, block, static_cast<size_t>(end - start), start);
    if (size != end - start) throw_io_error(size < 0 ? errno : EIO, "read", path_);
    const std::string_view text(block, static_cast<size_t>(size));
    const size_t newline = text.rfind('\n');
    end = newline == std::string_view::npos ? start : start + static_cast<off_t>(newline) + 1;
    if (newline != std::string_view::npos) break;
  }
  if (end != status.st_size && ftruncate(fd_, end) != 0) throw_io_error(errno, "write", path_);
}

int64_t AppendFile::size() const {
  struct stat status{};
  if (fstat(fd_, &status) != 0) throw_io_error(errno, "read", path_);
  return S_ISREG(status.st_mode) ? status.st_size : 0;
}

void AppendFile::require_whole(int64_t bytes) const {
  struct stat status{};
  if (fstat(fd_, &status) != 0) throw_io_error(errno, "read", path_);
  if (!S_ISREG(status.st_mode)) return;
  const bool is_gone = status.st_nlink == 0;
  if (!is_gone && status.st_size >= bytes) return;
  throw_io_error(is_gone ? ENOENT : EIO, "write",
                 path_ + ", which was " + (is_gone ? "removed" : "cut short") + " during the run");
}

std::string AppendFile::text_from(int64_t begin) const {
  std::string text(static_cast<size_t>(std::max<int64_t>(0, size() - begin)), '\0');
  size_t read = 0;
  while (read < text.size()) {
    const ssize_t count = pread(fd_, text.data() + read, text.size() - read,
                                static_cast<off_t>(begin) + static_cast<off_t>(read));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_io_error(count < 0 ? errno : EIO, "read", path_);
    read += static_cast<size_t>(count);
  }
  return text;
}

void AppendFile::cut(int64_t end) {
  if (size() <= end) return;
  if (ftruncate(fd_, end) != 0) throw_io_error(errno, "write", path_);
  cut_partial_line();
}

std::string AppendFile::rename_aside() const {
  const std::filesystem::path path(path_);
  std::string aside;
  for (int i = 1; i == 1 || access(aside.c_str(), F_OK) == 0; ++i) {
    const std::string name = path.stem().string() + "-" + std::to_string(i) + path.extension().string();
    aside = (path.parent_path() / name).string();
  }
  if (rename(path_.c_str(), aside.c_str()) != 0) throw_io_error(errno, "rename", path_);
  return aside;
}

std::string AppendFile::move_aside() {
  std::string aside = rename_aside();
  const int fd = open_for_append(path_);
  close(fd_);
  fd_ = fd;
  return aside;
}

std::string AppendFile::mend(int64_t expected) {
  struct stat ours{};
  struct stat there{};
  if (fstat(fd_, &ours) != 0) throw_io_error(errno, "read", path_);
  if (!S_ISREG(ours.st_mode)) return {};
  const bool is_there = lstat(path_.c_str(), &there) == 0;
  if (stat(path_.c_str(), &there) == 0 && there.st_ino == ours.st_ino && there.st_dev == ours.st_dev) {
    if (ours.st_size >= expected) return {};
    cut_partial_line();
    return path_ + " was cut short while the run went on: " + std::to_string(size()) + " of " +
           std::to_string(expected) + " bytes are left, and the rows behind them are lost";
  }
  // Numbers of folders alone are not stable on every disk.
  if (folder_of(path_) != folder_) throw_io_error(ENOENT, "write", path_ + ", whose folder was moved");
  const std::string rows = text_from(0);
  const std::string aside = is_there ? rename_aside() : "";
  const int fd = open_for_append(path_);
  close(fd_);
  fd_ = fd;
  append(rows);
  return path_ + " was " + (is_there ? "replaced" : "removed") +
         " while the run went on, and is written anew" +
         (is_there ? "; what stood there is in " + aside : std::string());
}

void AppendFile::append(std::string_view lines) {
  size_t written = 0;
  while (written < lines.size()) {
    const ssize_t size = write(fd_, lines.data() + written, lines.size() - written);
    if (size >= 0) {
      written += static_cast<size_t>(size);
      continue;
    }
    if (errno == EINTR) continue;
    const int error = errno;
    struct stat status{};
    // Best effort: the error that counts is the one of write.
    if (written > 0 && fstat(fd_, &status) == 0 && S_ISREG(status.st_mode)) {
      [[maybe_unused]] const int ignored = ftruncate(fd_, status.st_size - static_cast<off_t>(written));
    }
    throw_io_error(error, "write", path_);
  }
}

}  // namespace gradstep
