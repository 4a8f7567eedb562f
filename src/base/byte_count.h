// Amounts of memory as users write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gradstep {

// "8g", "512m", "64k", "1000000": bytes, k, m and g being powers of 1024, in either case, with a fraction if
// need be
// ("1.5g"). Whole text or nothing; nothing below one byte or beyond 2^62 either.
[[nodiscard]] std::optional<int64_t> parse_byte_count(const std::string& text);

}  // namespace gradstep
