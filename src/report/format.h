// Numbers as people read them: fixed digits, thousands, bytes, durations.
#pragma once

#include <cstdint>
#include <string>

namespace gradstep {

// printf's %.<digits>f; not finite: "NaN", "Infinity", "-Infinity".
[[nodiscard]] std::string fixed_text(double value, int digits);
// printf's %.2e, likewise.
[[nodiscard]] std::string scientific_text(double value);
// "60,000"
[[nodiscard]] std::string thousands_text(int64_t value);
// "1.6 MB" (powers of 1000), "512 bytes"
[[nodiscard]] std::string bytes_text(int64_t bytes);
// "0:07", "12:05", "3:00:00"
[[nodiscard]] std::string duration_text(double seconds);
// "3.2 s" below a minute, then as duration_text.
[[nodiscard]] std::string seconds_text(double seconds);

}  // namespace gradstep
