// ReadFile: a file opened for reading at any offset, of whose size one can be sure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "gradstep/base/error.h"

namespace gradstep {

// A file or folder that cannot be looked at: rights, a link that leads nowhere, a disk that fails. What is in
// it may be whole.
class AccessError : public CheckpointError {
 public:
  using CheckpointError::CheckpointError;
};

// What is at the path, links followed; file_type::not_found if nothing is. Throws AccessError if that cannot
// be told.
[[nodiscard]] std::filesystem::file_status status_of(const std::filesystem::path& path);

// Errors are CheckpointErrors that name the file and, where there is one, the offset.
class ReadFile {
 public:
  // Refuses what is not a plain file (a pipe nobody writes to would hold us).
  explicit ReadFile(const std::string& path);
  ~ReadFile();
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;

  [[nodiscard]] uint64_t size() const { return size_; }
  void read(void* out, uint64_t size, uint64_t offset) const;

 private:
  const std::string path_;
  const int fd_;
  uint64_t size_ = 0;
};

// All of a file that must not be longer than max_bytes.
[[nodiscard]] std::string read_text_file(const std::string& path, uint64_t max_bytes);

}  // namespace gradstep
