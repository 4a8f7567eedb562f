// One overload for each kind of event, then lines for those that read better as a sentence.
// no torch
#include "report/event_text.h"

#include <cstdint>

#include "gradstep/base/stop.h"

namespace gradstep {
namespace {

EventText text_of(const Resumed& event) {
  return {"resume",
          {{"from", event.from},
           {"window", std::to_string(event.window)},
           {"left", event.nothing_left ? "nothing left to do" : ""}}};
}
EventText text_of(const SettingChanged& event) {
  return {"changed", {{"key", event.key}, {"before", event.before}, {"now", event.now}}};
}
EventText text_of(const BrokenCheckpoint& event) { return {"broken checkpoint", {{"what", event.what}}}; }
EventText text_of(const SaveFailed& event) { return {"checkpoint failed", {{"error", event.error}}}; }
EventText text_of(const OutOfMemory& event) {
  return {"out of memory",
          {{"window", std::to_string(event.window)}, {"micro_batch", std::to_string(event.micro_batch)}}};
}
EventText text_of(const Spike& event) {
  return {"spike", {{"window", std::to_string(event.window)}, {"what", event.what}}};
}
EventText text_of(const RolledBack& event) {
  return {"rollback", {{"window", std::to_string(event.window)}, {"cause", event.cause}, {"to", event.to}}};
}
EventText text_of(const BlackBoxWritten& event) {
  return {"black box", {{"window", std::to_string(event.window)}, {"file", event.file}}};
}
EventText text_of(const BlackBoxFailed& event) {
  return {"black box failed", {{"window", std::to_string(event.window)}, {"error", event.error}}};
}
EventText text_of(const SlowedDown& event) {
  return {"slowed down", {{"window", std::to_string(event.window)}, {"what", event.what}}};
}
EventText text_of(const RunFailed& event) {
  return {"failed", {{"error", event.error}, {"code", std::to_string(event.code)}}};
}
EventText text_of(const Warning& event) { return {"warning", {{"text", event.text}}}; }

// "name: key value, key value"; sentences go without their key.
template <class Kind>
std::string line_of(const Kind& event) {
  const EventText row = text_of(event);
  std::string text = row.name;
  for (size_t i = 0; i < row.fields.size(); ++i) {
    const auto& [key, value] = row.fields[i];
    text += (i == 0 ? ": " : ", ") +
            (key == "what" || key == "text" || key == "error" ? value : key + " " + value);
  }
  return text;
}
std::string line_of(const Resumed& event) {
  return "resumed from " + event.from + " at window " + std::to_string(event.window) +
         (event.nothing_left ? ": nothing left to do" : "");
}
std::string line_of(const SettingChanged& event) {
  return "changed: " + event.key + " was " + event.before + ", is " + event.now;
}
std::string line_of(const BlackBoxWritten& event) {
  return "black box of window " + std::to_string(event.window) + ": " + event.file +
         ", for the command replay";
}

}  // namespace

EventText event_text(const Event& event) {
  return std::visit([](const auto& kind) { return text_of(kind); }, event);
}

std::string event_line(const Event& event) {
  return std::visit([](const auto& kind) { return line_of(kind); }, event);
}

std::string reason_text(const RunEnd& end) {
  switch (end.reason) {
    case EndReason::kDone:
      return "done";
    case EndReason::kEarlyStop:
      return "early stop";
    case EndReason::kStopped:
      return stop_name(end.stopped_by);
    case EndReason::kStopAfter:
      return "--stop-after";
    case EndReason::kMaxTime:
      return "--max-time";
  }
  return "";
}

}  // namespace gradstep
