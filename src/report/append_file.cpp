// Checked POSIX calls behind AppendFile.
// no torch
#include "report/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "io/io_error.h"

namespace gradstep {

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ == -1) throw_io_error(errno, "open", path_);
  try {
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

void AppendFile::cut(int64_t end) {
  if (size() <= end) return;
  if (ftruncate(fd_, end) != 0) throw_io_error(errno, "write", path_);
  cut_partial_line();
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
