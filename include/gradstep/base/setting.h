// Values that say how a run goes, as texts: how often something happens, and what a changed setting means on
// resume.
#pragma once

#include <string>
#include <vector>

namespace gradstep {

/// How often something happens: every `value` updates, epochs or seconds. If `value` is 0, only at the end.
struct Interval {
  /// What an interval counts.
  enum class Unit {
    kUpdates,  ///< "100"
    kEpochs,   ///< "1ep"
    kSeconds   ///< "30s", "10m", "2h"
  };
  double value = 0;            ///< in `unit`; 0: only at the end
  Unit unit = Unit::kUpdates;  ///< what `value` counts
  /// Equal if both fields are equal.
  bool operator==(const Interval&) const = default;
};

/// Reads "100" (updates), "1ep" (epochs), "30s", "10m", "2h" or "0". Throws ConfigError for any other text.
[[nodiscard]] Interval parse_interval(const std::string& text);
/// The text that parse_interval() reads back to the same interval.
[[nodiscard]] std::string to_string(const Interval& interval);

/// What it means for a resumed run if the value of a setting differs from the checkpoint's.
enum class OnResume {
  kRefused,      ///< it would be another run: refused unless drift is accepted (Job::accept_drift)
  kWarned,       ///< the numbers change from here on: allowed, with a warning
  kFree,         ///< the numbers stay as they are: allowed
  kNotCompared,  ///< not compared: it holds for one start only, or what follows from it is compared instead
                 ///< (samples of an update, updates of the run)
};

/// One setting of a run as text. Checkpoints keep it, and a resume compares it.
struct Setting {
  std::string key;                          ///< "batch_size"
  std::string text;                         ///< the value
  OnResume on_resume = OnResume::kRefused;  ///< what a changed value means
  std::string default_text{};               ///< the value of a checkpoint that lacks the key
};
/// The settings of a run, in a fixed order.
using Settings = std::vector<Setting>;

}  // namespace gradstep
