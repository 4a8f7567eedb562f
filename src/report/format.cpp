// Formatting through snprintf, with words of our own for what is not finite.
// no torch
#include "report/format.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "base/number_text.h"

namespace gradstep {
namespace {

std::string printf_text(const char* format, int digits, double value) {
  if (const std::string_view text = not_finite_text(value); !text.empty()) return std::string(text);
  char buffer[400];  // the largest double has 309 digits before the point
  const int size = std::snprintf(buffer, sizeof buffer, format, digits, value);
  return {buffer, static_cast<size_t>(size)};
}

}  // namespace

std::string fixed_text(double value, int digits) { return printf_text("%.*f", digits, value); }

std::string scientific_text(double value) { return printf_text("%.*e", 2, value); }

std::string thousands_text(int64_t value) {
  const std::string digits = std::to_string(value);
  const size_t first_digit = value < 0 ? 1 : 0;
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > first_digit && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string bytes_text(int64_t bytes) {
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (std::llabs(bytes) < 1000) return std::to_string(bytes) + " bytes";
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  // 999.95 would be rounded to 1000.0.
  while (std::abs(value) >= 999.95 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return fixed_text(value, 1) + " " + kUnits[unit];
}

std::string duration_text(double seconds) {
  constexpr double kLongest = 1e9;
  if (!(seconds >= 0) || seconds > kLongest) return "?";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  const auto two = [](int64_t value) {
    std::string text(value < 10 ? 1 : 0, '0');
    return text += std::to_string(value);
  };
  const std::string tail = two(whole % 60);
  if (whole < 3600) return std::to_string(whole / 60) + ":" + tail;
  return std::to_string(whole / 3600) + ":" + two(whole / 60 % 60) + ":" + tail;
}

std::string seconds_text(double seconds) {
  return seconds < 60 ? fixed_text(seconds, 1) + " s" : duration_text(seconds);
}

}  // namespace gradstep
