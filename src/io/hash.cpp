// XXH3 (64 bits) over memory and files.
// no torch
#include "io/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "io/file_pieces.h"
#include "io/hex.h"

namespace gradstep {
namespace {

std::string canonical_hex(XXH64_hash_t hash) {
  XXH64_canonical_t canonical;
  XXH64_canonicalFromHash(&canonical, hash);
  return to_hex(canonical.digest, sizeof canonical.digest);
}

}  // namespace

std::string xxh3(const void* bytes, size_t size) { return canonical_hex(XXH3_64bits(bytes, size)); }

std::string xxh3_file(const std::string& path) {
  Xxh3 hash;
  for_each_piece(path, [&](std::string_view piece) { hash.update(piece); });
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
