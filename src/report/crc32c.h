// crc32c: the checksum of event files.
#pragma once

#include <cstdint>
#include <string_view>

namespace gradstep {

// CRC-32C (Castagnoli) of `bytes`.
[[nodiscard]] uint32_t crc32c(std::string_view bytes);

// The same, rotated and shifted as record files store it, so that the checksum of a text that contains
// checksums stays good.
[[nodiscard]] uint32_t masked_crc32c(std::string_view bytes);

}  // namespace gradstep
