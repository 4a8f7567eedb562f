// How values of the averaged parameters are called in rows: "ema_val_loss" beside "val_loss".
#pragma once

#include <string_view>

namespace gradstep {

inline constexpr char kAveragedPrefix[] = "ema_";

// Whether only a run with averages has a value of this name.
[[nodiscard]] inline bool is_of_averages(std::string_view name) { return name.starts_with(kAveragedPrefix); }

}  // namespace gradstep
