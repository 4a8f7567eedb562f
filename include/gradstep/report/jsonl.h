// JsonlSink: metrics.jsonl, one JSON object a line. Keys and their meaning: docs/design.md.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "gradstep/report/sink.h"

namespace gradstep {

// Numbers in shortest round-trip form; a number that is not finite as the string "NaN", "Infinity" or
// "-Infinity".
[[nodiscard]] std::string window_row_json(const WindowRow& row);
[[nodiscard]] std::string eval_row_json(const EvalRow& row);
[[nodiscard]] std::string event_row_json(const EventRow& row);

class JsonlSink final : public Sink {
 public:
  // Appends to `path`, whole lines only. Window rows that follow each other fast are held back for a second
  // at most while further rows come; evaluations, events and the end are written at once, with all rows
  // before them. end() adds {"event":"end", ...}. A write that fails throws std::system_error with the path
  // and leaves whole lines behind.
  explicit JsonlSink(const std::string& path);
  ~JsonlSink() override;
  void window(const WindowRow& row) override;
  void eval(const EvalRow& row) override;
  void event(const EventRow& row) override;
  void end(const RunEnd& row) override;
  void flush() override;
  // The position is the size of the file in bytes, under the file's name. Rewinding cuts what lies behind;
  // without a position of this file it is moved aside, to <name>-1.jsonl or so. Throws CheckpointError for a
  // position that is no number.
  void note_position(std::map<std::string, std::string>& positions) override;
  [[nodiscard]] std::string rewind(const std::map<std::string, std::string>& positions,
                                   Events events) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradstep
