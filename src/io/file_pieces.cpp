// for_each_piece: open and read, each checked.
// no torch
#include "io/file_pieces.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "io/io_error.h"

namespace gradstep {
namespace {

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw_io_error(errno, "open", path_);
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  // 0 at the end.
  size_t read(char* out, size_t size) const {
    while (true) {
      const ssize_t count = ::read(fd_, out, size);
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR) throw_io_error(errno, "read", path_);
    }
  }

 private:
  const std::string path_;
  const int fd_;
};

}  // namespace

void for_each_piece(const std::string& path, const std::function<void(std::string_view)>& use) {
  const OpenFile file(path);
  std::vector<char> buffer(size_t{1} << 18);
  while (const size_t count = file.read(buffer.data(), buffer.size())) use({buffer.data(), count});
}

}  // namespace gradstep
