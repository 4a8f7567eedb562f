// Interval: how often something happens in a run.
#pragma once

#include <string>

namespace gradstep {

/// Every N updates, epochs or seconds; never but at the end if value is 0.
struct Interval {
  enum class Unit { kUpdates, kEpochs, kSeconds };
  double value = 0;
  Unit unit = Unit::kUpdates;
  bool operator==(const Interval&) const = default;
};

/// "100", "1ep", "30s", "10m", "2h", "0". Throws ConfigError.
[[nodiscard]] Interval parse_interval(const std::string& text);
/// Text that parse_interval reads back to the same interval.
[[nodiscard]] std::string to_string(const Interval& interval);

}  // namespace gradstep
