// shortest: numbers as text that loses nothing.
#pragma once

#include <string>

namespace gradstep {

// The shortest text that reads back to the same number: "0.001", "1e-08", "64"; "inf", "-inf", "nan".
[[nodiscard]] std::string shortest(double value);

}  // namespace gradstep
