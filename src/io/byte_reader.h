// ByteReader: the bytes of a file from start to end, unpacked on the way where the file is gzipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace gradstep {

// gzip is recognised by the first two bytes, not by the name. Memory is bounded whatever the file claims.
// Every error is a DataError with file, offset, expected and found.
class ByteReader {
 public:
  explicit ByteReader(const std::string& path);
  ~ByteReader();
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  // Fills `out` with up to `size` bytes and returns their number: fewer only at the end of the content. The
  // end of a gzipped file counts as reached only when its check sum and length were right.
  size_t read(void* out, size_t size);
  [[nodiscard]] bool is_gzip() const;
  // Bytes of the file itself, packed or not.
  [[nodiscard]] uint64_t file_size() const;
  // No read can ever give more than this: the file's size, or 1032 times that, the limit of deflate. Lets a
  // claim in a header be refused before memory is taken for it.
  [[nodiscard]] uint64_t max_content_size() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradstep
