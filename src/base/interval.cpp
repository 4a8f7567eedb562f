// no torch
// Reads and prints intervals.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/number_text.h"
#include "gradstep/base/error.h"
#include "gradstep/base/setting.h"

namespace gradstep {
namespace {

struct IntervalSuffix {
  const char* text;
  Interval::Unit unit;
  double factor;  // to the unit
};
// From the longest time down, for printing.
constexpr IntervalSuffix kSuffixes[] = {{"ep", Interval::Unit::kEpochs, 1},
                                        {"h", Interval::Unit::kSeconds, 3600},
                                        {"m", Interval::Unit::kSeconds, 60},
                                        {"s", Interval::Unit::kSeconds, 1},
                                        {"", Interval::Unit::kUpdates, 1}};
constexpr double kMaxCount = 9007199254740992.0;  // above it doubles skip whole numbers

// Without an exponent, whose e would read as the e of "ep".
std::string plain_text(double value) {
  char buffer[512];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed).ptr};
}

bool is_whole(double value) { return value == std::floor(value); }

}  // namespace

Interval parse_interval(const std::string& text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::optional<double> number = parse_real(text.substr(0, digits));
  for (const IntervalSuffix& suffix : kSuffixes) {
    if (!number || text.substr(digits) != suffix.text) continue;
    const double value = *number * suffix.factor;
    if (value == 0) return {};
    if (value > kMaxCount || (suffix.unit != Interval::Unit::kSeconds && !is_whole(value))) break;
    return {value, suffix.unit};
  }
  throw ConfigError("interval '" + text +
                    "': must be a number such as 100 (updates), 1ep, 30s, 10m or 2h, or 0");
}

std::string to_string(const Interval& interval) {
  if (interval.value == 0) return "0";
  for (const IntervalSuffix& suffix : kSuffixes) {
    if (suffix.unit != interval.unit) continue;
    const double count = interval.value / suffix.factor;
    // Hours and minutes only where they are as exact as seconds.
    if (suffix.factor != 1 && !is_whole(count)) continue;
    return plain_text(count) + suffix.text;
  }
  return plain_text(interval.value);
}

}  // namespace gradstep
