// Hashes of bytes and files: MD5 and SHA-256 for downloads, XXH3 for our own files and fingerprints.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace gradstep {

// Lower-case hexadecimal. Files are read in pieces; throws std::system_error when a file cannot be read.
[[nodiscard]] std::string md5_file(const std::string& path);
[[nodiscard]] std::string sha256_file(const std::string& path);
// XXH3, 64 bits, as `xxhsum -H3` prints it.
[[nodiscard]] std::string xxh3(const void* bytes, size_t size);
// Throws std::system_error when the file cannot be read.
[[nodiscard]] std::string xxh3_file(const std::string& path);

// XXH3 of bytes that come in pieces: that of all of them in one.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;

  void update(std::string_view bytes);
  // Of all that came so far.
  [[nodiscard]] std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gradstep
