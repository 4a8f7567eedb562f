// Numbers and switches from text, whole or not at all, and numbers as text that loses nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gradstep {

// The shortest text that reads back to the same number: "0.001", "1e-08", "64"; "inf", "-inf", "nan".
[[nodiscard]] std::string shortest(double value);

// Whole text or nothing: "12x", "1e", "", "nan", "1e999" are none.
[[nodiscard]] std::optional<int64_t> parse_integer(const std::string& text);
[[nodiscard]] std::optional<uint64_t> parse_unsigned(const std::string& text);
[[nodiscard]] std::optional<double> parse_real(const std::string& text);
[[nodiscard]] std::optional<bool> parse_switch(const std::string& text);  // true false 1 0 yes no on off
// "NaN", "Infinity" or "-Infinity": how files and lines for people name a number that is not finite. Empty
// for one that is.
[[nodiscard]] std::string_view not_finite_text(double value);

}  // namespace gradstep
