// no torch
// A number and at most one letter.
#include "base/byte_count.h"

#include <charconv>
#include <cmath>
#include <system_error>

namespace gradstep {

std::optional<int64_t> parse_byte_count(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value, std::chars_format::fixed);
  if (error != std::errc() || end - stopped > 1) return std::nullopt;
  if (stopped != end) {
    const std::string letters = "kmg";
    const size_t power = letters.find(static_cast<char>(*stopped | 0x20));
    if (power == std::string::npos) return std::nullopt;
    value *= std::pow(1024.0, static_cast<double>(power + 1));
  }
  if (!(value >= 1 && value <= 4.6e18)) return std::nullopt;
  return static_cast<int64_t>(value);
}

}  // namespace gradstep
