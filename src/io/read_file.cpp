// no torch
// ReadFile: open, fstat and pread, each checked.
#include "io/read_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gradstep/base/error.h"

namespace gradstep {

std::filesystem::file_status status_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  const bool is_known = status.type() != std::filesystem::file_type::none &&
                        status.type() != std::filesystem::file_type::unknown;
  if (is_known) return status;
  throw AccessError("cannot look at " + path.string() + ": " + error.message() +
                    "; check its rights and its disk");
}

ReadFile::ReadFile(const std::string& path)
    : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ < 0) {
    const std::string what = "cannot open " + path + ": " + std::strerror(errno);
    if (errno == ENOENT || errno == ENOTDIR)
      throw CheckpointError(what + "; give the path of a model file, checkpoint or black box");
    throw AccessError(what + "; check its rights and its disk");
  }
  struct stat status{};
  if (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd_);
    throw CheckpointError(
        path +
        ": expected a file, found something else; give the path of a model file, checkpoint or black box");
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

ReadFile::~ReadFile() { ::close(fd_); }

void ReadFile::read(void* out, uint64_t size, uint64_t offset) const {
  char* to = static_cast<char*>(out);
  while (size > 0) {
    const ssize_t count = ::pread(fd_, to, static_cast<size_t>(size), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    const std::string place = path_ + ": at byte " + std::to_string(offset) + ": cannot be read: ";
    if (count < 0) throw AccessError(place + std::strerror(errno) + "; check the disk");
    if (count == 0) throw CheckpointError(place + "it became shorter; use another one");
    to += count;
    offset += static_cast<uint64_t>(count);
    size -= static_cast<uint64_t>(count);
  }
}

std::string read_text_file(const std::string& path, uint64_t max_bytes) {
  const ReadFile file(path);
  if (file.size() > max_bytes) {
    throw CheckpointError(path + ": expected at most " + std::to_string(max_bytes) + " bytes, found " +
                          std::to_string(file.size()) + "; not a file of a checkpoint, use another one");
  }
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(text.data(), file.size(), 0);
  return text;
}

}  // namespace gradstep
