// Values that say how a run goes, as texts: how often something happens, and what a changed setting means on
// resume.
#pragma once

#include <string>
#include <vector>

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

/// What a changed value means for a run that goes on from a checkpoint.
enum class OnResume {
  kRefused,      ///< another run: only if drift is accepted
  kWarned,       ///< the run goes another way from here on
  kFree,         ///< the numbers stay as they are
  kNotCompared,  ///< judged by what follows from it (samples of an update, updates of the run), or of one
                 ///< start only
};

/// One setting of a run as text: checkpoints keep it, and a resume compares it.
struct Setting {
  std::string key;
  std::string text;
  OnResume on_resume = OnResume::kRefused;
  std::string default_text{};  ///< what a checkpoint that lacks the key was made with
};
using Settings = std::vector<Setting>;

}  // namespace gradstep
