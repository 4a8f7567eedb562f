// Rows as JSON: the lines of metrics.jsonl.
#pragma once

#include <string>

#include "gradstep/report/rows.h"

namespace gradstep {

// Numbers in shortest round-trip form; a number that is not finite as the string "NaN", "Infinity" or
// "-Infinity".
[[nodiscard]] std::string window_row_json(const WindowRow& row);
[[nodiscard]] std::string eval_row_json(const EvalRow& row);
[[nodiscard]] std::string event_row_json(const EventRow& row);

}  // namespace gradstep
