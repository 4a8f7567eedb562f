// What the fuzz targets share: how a reader may refuse, and a file that lives in memory.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "gradstep/base/error.h"

namespace gradstep::fuzz {

/// Ends the process, which libFuzzer reports with the input, unless `ok`.
inline void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

/// Whether a complaint may quote control characters of the input, as those about flags do. The program
/// replaces them when it prints.
enum class Quotes { kNothing, kInput };

/// Calls `read`. A reader may refuse its input with an Error of one line; any other exception ends the
/// process. Returns whether it took the input.
template <class Read>
bool taken(Read read, Quotes quotes = Quotes::kNothing) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    const bool one_line = std::string_view(error.what()).find('\n') == std::string_view::npos;
    require(one_line || quotes == Quotes::kInput, "an error of several lines");
    return false;
  }
}

/// A file without a disk, for readers that want a path.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(::memfd_create(name, MFD_CLOEXEC)) {
    require(fd_ >= 0, "memfd_create failed");
    path_ = "/proc/self/fd/" + std::to_string(fd_);
  }
  ~MemoryFile() { ::close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  void set(const uint8_t* bytes, size_t size) const {
    require(::ftruncate(fd_, 0) == 0, "ftruncate failed");
    require(::pwrite(fd_, bytes, size, 0) == static_cast<ssize_t>(size), "pwrite failed");
  }
  void set(std::string_view bytes) const {
    set(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }

 private:
  const int fd_;
  std::string path_;
};

/// The input as text.
inline std::string text_of(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace gradstep::fuzz

// What libFuzzer calls for each input.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);
