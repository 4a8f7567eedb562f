// compare_rows: do two runs' metrics.jsonl tell the same story? Pure.
#pragma once

#include <cstdint>
#include <string>

namespace gradstep {

struct RowComparison {
  int64_t num_equal = 0;     // rows before the first difference
  std::string difference{};  // empty: none; else which row and key, and both values
};

// Rows of windows and evaluations, in order, key by key, to the last digit. Times, speeds and memory do not
// count, nor do rows of events. `first` and `second`: the texts of the two files. A line that is no row is a
// difference.
[[nodiscard]] RowComparison compare_rows(const std::string& first, const std::string& second);

}  // namespace gradstep
