// shortest: numbers as text that loses nothing. not_finite_text: the rest of them.
#pragma once

#include <string>
#include <string_view>

namespace gradstep {

// The shortest text that reads back to the same number: "0.001", "1e-08", "64"; "inf", "-inf", "nan".
[[nodiscard]] std::string shortest(double value);

/// "NaN", "Infinity" or "-Infinity": how files and lines for people name a number that is not finite. Empty
/// for one that is.
[[nodiscard]] std::string_view not_finite_text(double value);

}  // namespace gradstep
