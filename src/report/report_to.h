// Reports by name: what `report_to` offers besides console and metrics.jsonl.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gradstep/report/sinks.h"

namespace gradstep {

// "tensorboard", or several names with commas between them; "none" is the empty list. Nothing for an unknown
// name, one that comes twice, or "none" beside others.
[[nodiscard]] std::optional<std::vector<std::string>> parse_report_names(const std::string& text);

// "none or tensorboard": what parse_report_names() takes, for complaints and help.
[[nodiscard]] std::string known_report_names();

// Adds a best-effort sink for each name in `text`, writing into <output_dir>/<name>. REQUIRES: `text`
// parses.
void add_reports(SinkList& sinks, const std::string& text, const std::string& output_dir);

}  // namespace gradstep
