// One table: a name, and how to make its sink.
// no torch
#include "report/report_to.h"

#include <algorithm>
#include <memory>

#include "gradstep/report/sinks.h"

namespace gradstep {
namespace {

struct Report {
  const char* name;
  std::unique_ptr<Sink> (*make)(const std::string& folder);  // <output_dir>/<name>
};

constexpr Report kReports[] = {
    {"tensorboard",
     [](const std::string& folder) -> std::unique_ptr<Sink> {
       return std::make_unique<TensorBoardSink>(folder);
     }},
};

const Report* find_report(const std::string& name) {
  const auto* found = std::ranges::find(kReports, name, &Report::name);
  return found == std::end(kReports) ? nullptr : found;
}

}  // namespace

std::optional<std::vector<std::string>> parse_report_names(const std::string& text) {
  std::vector<std::string> names;
  if (text == "none") return names;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    if (find_report(name) == nullptr || std::ranges::find(names, name) != names.end()) return std::nullopt;
    names.push_back(name);
    begin = end + 1;
  }
  return names;
}

std::string known_report_names() {
  std::string text = "none";
  for (const Report& report : kReports) text += std::string(" or ") + report.name;
  if (std::size(kReports) > 1) text += " (several with commas)";
  return text;
}

void add_reports(SinkList& sinks, const std::string& text, const std::string& output_dir) {
  const std::optional<std::vector<std::string>> names = parse_report_names(text);
  if (!names) return;
  for (const std::string& name : *names)
    sinks.add_best_effort(name, find_report(name)->make(output_dir + "/" + name));
}

}  // namespace gradstep
