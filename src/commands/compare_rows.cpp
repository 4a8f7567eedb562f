// no torch
// Rows as JSON objects; numbers are written in their shortest exact form, so equal texts are equal numbers.
#include "commands/compare_rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

namespace gradstep {
namespace {

using Json = nlohmann::ordered_json;

struct Rows {
  std::vector<Json> rows;
  std::string broken;  // what is no row
};

Rows parse_rows(const std::string& text) {
  Rows result;
  std::istringstream lines(text);
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (lines.eof()) {
      result.broken = "the last line is cut off";
      return result;
    }
    Json row = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object()) {
      result.broken = "line " + std::to_string(number) + " is no row";
      return result;
    }
    if (!row.contains("event")) result.rows.push_back(std::move(row));
  }
  return result;
}

bool counts(const std::string& key) {
  return !key.starts_with("time_") && !key.ends_with("_per_s") && key != "memory";
}

// "the row of window 12", "the evaluation after update 10"
std::string name_of_row(const Json& row) {
  if (row.contains("window")) return "the row of window " + row["window"].dump();
  return "the evaluation after update " + (row.contains("update") ? row["update"].dump() : "?");
}

std::string value_text(const Json& row, const std::string& key) {
  return row.contains(key) ? row[key].dump(-1, ' ', true, Json::error_handler_t::replace) : "nothing";
}

// The first key whose values differ, with both; empty: none.
std::string difference_of(const Json& a, const Json& b) {
  for (const Json* row : {&a, &b}) {
    for (const auto& item : row->items()) {
      const std::string& key = item.key();
      if (!counts(key) || value_text(a, key) == value_text(b, key)) continue;
      return key + ": " + value_text(a, key) + " and " + value_text(b, key);
    }
  }
  return {};
}

}  // namespace

RowComparison compare_rows(const std::string& first, const std::string& second) {
  const Rows a = parse_rows(first);
  const Rows b = parse_rows(second);
  RowComparison result;
  const size_t num_common = std::min(a.rows.size(), b.rows.size());
  for (size_t i = 0; i < num_common; ++i) {
    const bool same_row = name_of_row(a.rows[i]) == name_of_row(b.rows[i]);
    const std::string difference = difference_of(a.rows[i], b.rows[i]);
    if (!same_row) {
      result.difference =
          "row " + std::to_string(i + 1) + ": " + name_of_row(a.rows[i]) + " and " + name_of_row(b.rows[i]);
    } else if (!difference.empty()) {
      result.difference = name_of_row(a.rows[i]) + ", " + difference;
    }
    if (!result.difference.empty()) return result;
    ++result.num_equal;
  }
  if (!a.broken.empty()) {
    result.difference = "metrics.jsonl of the first run: " + a.broken;
  } else if (!b.broken.empty()) {
    result.difference = "metrics.jsonl of the second run: " + b.broken;
  } else if (a.rows.size() != b.rows.size()) {
    const bool more_in_first = a.rows.size() > b.rows.size();
    result.difference = name_of_row((more_in_first ? a : b).rows[num_common]) + " is only in the " +
                        (more_in_first ? "first" : "second") + " run";
  }
  return result;
}

}  // namespace gradstep
