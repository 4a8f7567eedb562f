// What the parts of train's flag table share: ranges, and makers for intervals.
#pragma once

#include <vector>

#include "config/flag_table.h"

namespace gradstep {

using TrainFlags = std::vector<Flag<RunConfig>>;

// Headings that recipes have flags under, too.
inline constexpr char kDataGroup[] = "Data";
inline constexpr char kModelGroup[] = "Model";

// Large enough for any job, small enough that their products stay within 64 bits.
inline constexpr IntegerRange kCount{.min = 1, .max = 1'000'000'000};
inline constexpr IntegerRange kCountOrZero{.min = 0, .max = 1'000'000'000};
inline constexpr RealRange kNotNegative{.min = 0};
inline constexpr RealRange kBelowOne{.min = 0, .max = 1, .max_included = false};

// As parse_interval reads it; nothing where that throws.
[[nodiscard]] std::optional<Interval> interval_from(const std::string& text);
[[nodiscard]] Flag<RunConfig> interval_flag(FlagInfo info, Interval RunConfig::* field);

// Groups of the help that are about what may happen to a run.
void add_trouble_flags(TrainFlags& flags);
void add_checkpoint_flags(TrainFlags& flags);

}  // namespace gradstep
