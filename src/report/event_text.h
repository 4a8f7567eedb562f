// Words for events and ends of runs: the one place where the events and RunEnd become text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gradstep/report/sinks.h"

namespace gradstep {

// An event as metrics.jsonl has it: {"event": name, "update": ..., key: value ...}.
struct EventText {
  std::string name{};
  std::vector<std::pair<std::string, std::string>> fields{};
};

// Names and keys are part of the format of metrics.jsonl.
[[nodiscard]] EventText event_text(const Event& event);

// The line for the console.
[[nodiscard]] std::string event_line(const Event& event);

// "done", "early stop", "SIGTERM", "--stop-after", "--max-time".
[[nodiscard]] std::string reason_text(const RunEnd& end);

}  // namespace gradstep
