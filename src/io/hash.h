// XXH3 of bytes and files, for our own files and fingerprints. It finds damage, not malice.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace gradstep {

// XXH3, 64 bits, in lower-case hexadecimal, as `xxhsum -H3` prints it.
[[nodiscard]] std::string xxh3(const void* bytes, size_t size);
// Reads the file in pieces; throws std::system_error if it cannot be read.
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
