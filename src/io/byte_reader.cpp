// ByteReader: checked read(2) calls, and zlib if the file begins like gzip.
// no torch
#include "io/byte_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <vector>

#include "gradstep/base/error.h"

namespace gradstep {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr uint64_t kMaxDeflateRatio = 1032;
constexpr int kGzipWindowBits = 15 + 16;  // largest window; gzip wrapper, so zlib checks sum and length

}  // namespace

class ByteReader::Impl {
 public:
  explicit Impl(const std::string& path) : path_(path) {
    // Without O_NONBLOCK a pipe nobody writes to would hold us before its type is known.
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd_ < 0)
      throw DataError("cannot open " + path + ": " + std::strerror(errno) +
                      "; check the folder and its rights");
    struct stat status{};
    if (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(fd_);
      throw DataError(path + ": expected a file, found something else; check the folder");
    }
    file_size_ = static_cast<uint64_t>(status.st_size);
    try {
      begin();
    } catch (...) {
      ::close(fd_);
      throw;
    }
  }

  ~Impl() {
    if (is_gzip_) inflateEnd(&stream_);
    ::close(fd_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  size_t read(void* out, size_t size) {
    return is_gzip_ ? read_packed(static_cast<unsigned char*>(out), size)
                    : read_plain(static_cast<unsigned char*>(out), size);
  }
  [[nodiscard]] bool is_gzip() const { return is_gzip_; }
  [[nodiscard]] uint64_t file_size() const { return file_size_; }

 private:
  void begin() {
    buffer_.resize(static_cast<size_t>(std::min<uint64_t>(kBufferBytes, file_size_ + 1)));
    fill();
    is_gzip_ = left() >= 2 && starts_member();
    if (!is_gzip_) return;
    if (inflateInit2(&stream_, kGzipWindowBits) != Z_OK) throw std::bad_alloc();
  }

  [[nodiscard]] size_t left() const { return filled_ - used_; }
  [[nodiscard]] bool starts_member() const { return buffer_[used_] == 0x1f && buffer_[used_ + 1] == 0x8b; }
  // Offset in the file of the next byte that was not consumed.
  [[nodiscard]] uint64_t file_offset() const { return file_read_ - left(); }

  size_t read_file(unsigned char* out, size_t size) {
    size_t done = 0;
    while (done < size) {
      const ssize_t count = ::read(fd_, out + done, size - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        throw DataError(path_ + ": at byte " + std::to_string(file_read_) +
                        ": cannot be read: " + std::strerror(errno) + "; check the disk");
      }
      if (count == 0) break;
      done += static_cast<size_t>(count);
      file_read_ += static_cast<uint64_t>(count);
    }
    return done;
  }

  // Moves what is left to the front and reads as much as there is room for.
  void fill() {
    std::memmove(buffer_.data(), buffer_.data() + used_, left());
    filled_ = left();
    used_ = 0;
    filled_ += read_file(buffer_.data() + filled_, buffer_.size() - filled_);
  }

  size_t read_plain(unsigned char* out, size_t size) {
    const size_t from_buffer = std::min(size, left());
    std::memcpy(out, buffer_.data() + used_, from_buffer);
    used_ += from_buffer;
    return from_buffer + read_file(out + from_buffer, size - from_buffer);
  }

  size_t read_packed(unsigned char* out, size_t size) {
    size_t done = 0;
    while (done < size && !ended_) {
      if (left() == 0) fill();
      if (left() == 0) fail("more gzip data", "the end of the file: it was cut short");
      const size_t room = std::min<size_t>(size - done, UINT_MAX);
      stream_.next_in = buffer_.data() + used_;
      stream_.avail_in = static_cast<uInt>(left());
      stream_.next_out = out + done;
      stream_.avail_out = static_cast<uInt>(room);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      used_ = filled_ - stream_.avail_in;
      done += room - stream_.avail_out;
      if (status == Z_STREAM_END) {
        end_member();
      } else if (status == Z_MEM_ERROR) {
        throw std::bad_alloc();
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        fail("valid gzip data", stream_.msg != nullptr ? stream_.msg : "invalid data");
      }
    }
    return done;
  }

  // A gzip file may hold several members, one after the other; nothing else may follow.
  void end_member() {
    if (left() < 2) fill();
    if (left() == 0) {
      ended_ = true;
    } else if (left() >= 2 && starts_member()) {
      inflateReset(&stream_);
    } else {
      fail("the end of the file", "bytes that are not gzip data");
    }
  }

  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    throw DataError(path_ + ": at byte " + std::to_string(file_offset()) + " of the packed file: expected " +
                    expected + ", found " + found + "; the file is damaged, fetch it again");
  }

  const std::string path_;
  int fd_ = -1;
  uint64_t file_size_ = 0;
  uint64_t file_read_ = 0;  // bytes taken from the file so far
  std::vector<unsigned char> buffer_;
  size_t used_ = 0;    // of the buffer
  size_t filled_ = 0;  // of the buffer
  bool is_gzip_ = false;
  bool ended_ = false;
  z_stream stream_{};
};

ByteReader::ByteReader(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
ByteReader::~ByteReader() = default;
size_t ByteReader::read(void* out, size_t size) { return impl_->read(out, size); }
bool ByteReader::is_gzip() const { return impl_->is_gzip(); }
uint64_t ByteReader::file_size() const { return impl_->file_size(); }
uint64_t ByteReader::max_content_size() const {
  const uint64_t size = impl_->file_size();
  if (!impl_->is_gzip()) return size;
  return size > UINT64_MAX / kMaxDeflateRatio ? UINT64_MAX : size * kMaxDeflateRatio;
}

}  // namespace gradstep
