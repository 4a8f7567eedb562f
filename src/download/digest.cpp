// MD5 and SHA-256 of files.
// no torch
#include "download/digest.h"

#include <openssl/evp.h>

#include <array>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>

#include "io/file_pieces.h"
#include "io/hex.h"

namespace gradstep {
namespace {

void require(int ok) {
  if (ok != 1) throw std::runtime_error("OpenSSL refuses to compute a digest");
}

std::string digest_file(const std::string& path, const EVP_MD* algorithm) {
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!context) throw std::bad_alloc();
  require(EVP_DigestInit_ex(context.get(), algorithm, nullptr));
  for_each_piece(path, [&](std::string_view piece) {
    require(EVP_DigestUpdate(context.get(), piece.data(), piece.size()));
  });
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  require(EVP_DigestFinal_ex(context.get(), digest.data(), &size));
  return to_hex(digest.data(), size);
}

}  // namespace

std::string md5_file(const std::string& path) { return digest_file(path, EVP_md5()); }
std::string sha256_file(const std::string& path) { return digest_file(path, EVP_sha256()); }

}  // namespace gradstep
