// Rows as JSON: the lines of metrics.jsonl.
#pragma once

#include <string>
#include <string_view>

#include "gradstep/report/rows.h"
#include "report/json_text.h"

namespace gradstep {

// Numbers in shortest round-trip form; a number that is not finite as the string "NaN", "Infinity" or
// "-Infinity".
[[nodiscard]] std::string window_row_json(const WindowRow& row);
[[nodiscard]] std::string eval_row_json(const EvalRow& row);
[[nodiscard]] std::string event_row_json(const EventRow& row);

// Whether a line of metrics.jsonl is the row with which a run ended.
[[nodiscard]] bool is_end_row(std::string_view line);

// Adds val_loss and val_<metric>; with `averaged`, their ema_ twins instead.
void add_eval_values(JsonLine& line, const EvalRow& row, bool averaged);

}  // namespace gradstep
