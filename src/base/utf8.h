// UTF-8: whether a text is, and what stands for bytes that are not. A path of Linux may hold any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace gradstep {

// U+FFFD
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// The length of the UTF-8 sequence that `text` begins with; 0: it begins with none. `text` is not empty.
[[nodiscard]] size_t utf8_length(std::string_view text);
[[nodiscard]] bool is_utf8(std::string_view text);
// Each byte that belongs to no UTF-8 sequence becomes U+FFFD.
[[nodiscard]] std::string to_utf8(std::string_view text);
// A text of the user in a message: its beginning if it is longer than `limit` bytes, cut between characters,
// with its size.
[[nodiscard]] std::string shortened(const std::string& text, size_t limit = 100);

}  // namespace gradstep
