// Bytes as lower-case hexadecimal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gradstep {

inline std::string to_hex(const unsigned char* bytes, size_t size) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * size);
  for (size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace gradstep
