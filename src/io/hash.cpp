// Hashes: OpenSSL's digests over files, XXH3 (64 bits) over memory.
// no torch
#include "gradstep/io/hash.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "io/io_error.h"

namespace gradstep {
namespace {

std::string to_hex(const unsigned char* bytes, size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * size);
  for (size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw_io_error(errno, "open", path_);
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  // 0 at the end.
  size_t read(unsigned char* out, size_t size) const {
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

std::string canonical_hex(XXH64_hash_t hash) {
  XXH64_canonical_t canonical;
  XXH64_canonicalFromHash(&canonical, hash);
  return to_hex(canonical.digest, sizeof canonical.digest);
}

void require(int ok) {
  if (ok != 1) throw std::runtime_error("OpenSSL refuses to compute a digest");
}

std::string digest_file(const std::string& path, const EVP_MD* algorithm) {
  const OpenFile file(path);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!context) throw std::bad_alloc();
  require(EVP_DigestInit_ex(context.get(), algorithm, nullptr));
  std::vector<unsigned char> buffer(size_t{1} << 18);
  while (const size_t count = file.read(buffer.data(), buffer.size())) {
    require(EVP_DigestUpdate(context.get(), buffer.data(), count));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  require(EVP_DigestFinal_ex(context.get(), digest.data(), &size));
  return to_hex(digest.data(), size);
}

}  // namespace

std::string md5_file(const std::string& path) { return digest_file(path, EVP_md5()); }
std::string sha256_file(const std::string& path) { return digest_file(path, EVP_sha256()); }

std::string xxh3(const void* bytes, size_t size) { return canonical_hex(XXH3_64bits(bytes, size)); }

std::string xxh3_file(const std::string& path) {
  const OpenFile file(path);
  Xxh3 hash;
  std::vector<unsigned char> buffer(size_t{1} << 18);
  while (const size_t count = file.read(buffer.data(), buffer.size())) {
    hash.update({reinterpret_cast<const char*>(buffer.data()), count});
  }
  return hash.hex();
}

struct Xxh3::State {
  XXH3_state_t xxh{};  // aligned to 64 bytes, which operator new respects
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh); }
Xxh3::~Xxh3() = default;
void Xxh3::update(std::string_view bytes) { XXH3_64bits_update(&state_->xxh, bytes.data(), bytes.size()); }
std::string Xxh3::hex() const { return canonical_hex(XXH3_64bits_digest(&state_->xxh)); }

}  // namespace gradstep
