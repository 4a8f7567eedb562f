// How a JSON text of ours shows a number, as rows of metrics.jsonl do.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/number_text.h"

namespace gradstep {

// JSON has no word for a number that is not finite: it becomes the text "NaN", "Infinity" or "-Infinity".
[[nodiscard]] inline nlohmann::ordered_json number_json(double value) {
  const std::string_view text = not_finite_text(value);
  return text.empty() ? nlohmann::ordered_json(value) : nlohmann::ordered_json(text);
}

}  // namespace gradstep
