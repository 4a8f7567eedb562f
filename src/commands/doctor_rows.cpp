// no torch
// Reads the file in pieces, line by line, as it may be larger than the memory.
#include "commands/doctor_rows.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/number_text.h"
#include "base/utf8.h"
#include "io/read_file.h"
#include "report/format.h"

namespace gradstep {
namespace {

using Json = nlohmann::json;

constexpr char kRowsFile[] = "metrics.jsonl";
constexpr size_t kMostLineBytes = size_t{16} << 20;

std::string text_of(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : "";
}

// -1: there is no such number.
int64_t number_of(const Json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_number_integer() ? found->get<int64_t>() : -1;
}

// A window's row; update -1: there is none.
struct LastWindow {
  int64_t window = 0;
  int64_t update = -1;
};

// All that the lines say.
class Rows {
 public:
  // position: of the newest checkpoint; -1: there is none.
  explicit Rows(int64_t position) : position_(position) { at_start(); }

  void read(const ReadFile& file) {
    std::string piece;
    std::string line;
    constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
    for (uint64_t offset = 0; offset < file.size(); offset += piece.size()) {
      piece.resize(static_cast<size_t>(std::min(kPieceBytes, file.size() - offset)));
      file.read(piece.data(), piece.size(), offset);
      for (size_t begin = 0; begin < piece.size();) {
        const size_t end = piece.find('\n', begin);
        const size_t length = std::min(end, piece.size()) - begin;
        if (line.size() + length <= kMostLineBytes) line.append(piece, begin, length);
        begin += length;
        if (end == std::string::npos) break;
        ++begin;
        take(line);
        line.clear();
        bytes = static_cast<int64_t>(offset + begin);
        if (bytes == position_) at_position = last;
      }
    }
    size = static_cast<int64_t>(file.size());
  }

  int64_t size = 0;
  int64_t bytes = 0;  // of whole lines
  int64_t num_lines = 0;
  LastWindow last{};
  // The last window before the position; nothing: the position is no end of a line.
  std::optional<LastWindow> at_position{};
  std::string fault{};     // the first line that is no row
  std::string disorder{};  // windows that come twice
  std::string gap{};       // windows without rows
  Json last_row{};

 private:
  void at_start() {
    if (position_ == 0) at_position = last;
  }

  void take(const std::string& line) {
    ++num_lines;
    Json row = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object()) {
      if (fault.empty()) fault = "line " + std::to_string(num_lines) + " is no row: " + shortened(line, 40);
      return;
    }
    if (const int64_t window = number_of(row, "window"); window >= 0 && !row.contains("event")) {
      if (last.update >= 0) compare(last.window, window);
      last = {window, number_of(row, "update")};
    }
    last_row = std::move(row);
  }

  void compare(int64_t before, int64_t now) {
    const std::string place = "line " + std::to_string(num_lines) + ": window " + std::to_string(now) +
                              " comes after window " + std::to_string(before);
    if (now <= before && disorder.empty()) disorder = place;
    if (now > before + 1 && gap.empty()) gap = place;
  }

  int64_t position_;
};

// -1: the checkpoint knows of no rows.
int64_t position_of(const TrainState* newest) {
  if (newest == nullptr) return -1;
  const auto found = newest->report_positions.find(kRowsFile);
  return found == newest->report_positions.end() ? -1 : parse_integer(found->second).value_or(-1);
}

std::string name_of(const TrainState& newest) { return checkpoint_name(newest.engine.counters.updates); }

// What the rows say of the run up to the checkpoint, and the checkpoint says otherwise. Empty: nothing.
std::string contradiction(const Rows& rows, int64_t position, const TrainState& newest) {
  if (rows.bytes < position) {
    return "has " + std::to_string(rows.bytes) + " of the " + std::to_string(position) + " bytes that " +
           name_of(newest) +
           " knows of: rows are missing, and a resume goes on without them; put the file back";
  }
  if (!rows.at_position) {
    return "byte " + std::to_string(position) + ", to which " + name_of(newest) +
           " counts, is within a row: the file was changed; put it back as it was";
  }
  const EngineCounters& counters = newest.engine.counters;
  if (rows.at_position->update < 0) return "";
  if (rows.at_position->window == counters.windows && rows.at_position->update <= counters.updates) return "";
  return "are at window " + std::to_string(rows.at_position->window) + ", update " +
         std::to_string(rows.at_position->update) + " where " + name_of(newest) + " is at window " +
         std::to_string(counters.windows) + ": the file is of another run; put the right one back";
}

Finding examine_content(const std::string& path, const Rows& rows, const TrainState* newest, bool live) {
  const auto wrong = [&](const std::string& text) {
    return problem("rows", path + ": " + text, ExitCode::kCheckpoint);
  };
  if (!rows.fault.empty()) return wrong(rows.fault + "; the file was changed or its disk is failing");
  const int64_t position = position_of(newest);
  if (position >= 0) {
    if (const std::string text = contradiction(rows, position, *newest); !text.empty()) return wrong(text);
  }
  if (!rows.disorder.empty()) return wrong(rows.disorder + ": two processes wrote it; keep one run a folder");
  std::string text = kRowsFile + std::string(" has ") + thousands_text(rows.num_lines) +
                     (rows.num_lines == 1 ? " row" : " rows");
  if (rows.last.update >= 0) text += ", up to update " + std::to_string(rows.last.update);
  if (!rows.gap.empty()) return warning("rows", text + "; rows are missing: " + rows.gap);
  if (rows.bytes < rows.size)
    text += live ? "; the last one is being written" : "; the last one is cut, and the next start removes it";
  if (newest != nullptr && !live && rows.last.update > newest->engine.counters.updates)
    text += "; those after " + name_of(*newest) + " come again when the run goes on";
  return fine("rows", text);
}

bool is_end_for_good(const Rows& rows) {
  const std::string reason = text_of(rows.last_row, "reason");
  return text_of(rows.last_row, "event") == "end" && (reason == "done" || reason == "early stop");
}

Finding examine_end(const Rows& rows, const TrainState* newest, bool live) {
  const std::string event = text_of(rows.last_row, "event");
  const std::string at =
      " at update " + std::to_string(std::max<int64_t>(number_of(rows.last_row, "update"), 0));
  if (live) return fine("end", "the run goes on");
  if (event == "failed") {
    return warning("end",
                   "the run failed" + at + ": " + text_of(rows.last_row, "error") +
                       "; mend that and go on with its config.toml (train --config) and --resume auto");
  }
  if (event == "end") {
    const std::string reason = text_of(rows.last_row, "reason");
    const bool for_good = is_end_for_good(rows);
    const int64_t update = number_of(rows.last_row, "update");
    if (for_good && newest != nullptr && update > newest->engine.counters.updates)
      return warning("end", "the run ended" + at + ": " + reason + ", and its newest checkpoint is " +
                                name_of(*newest) + "; --resume auto makes the rest again");
    return fine("end",
                "the run ended" + at + ": " + reason +
                    (for_good ? "" : "; go on with its config.toml (train --config) and --resume auto"));
  }
  if (rows.num_lines == 0 && newest == nullptr) return fine("end", "the run has not begun");
  return warning("end", "the run was killed at update " +
                            std::to_string(std::max<int64_t>(rows.last.update, 0)) +
                            " or later; go on with its config.toml (train --config) and --resume auto");
}

}  // namespace

std::vector<Finding> examine_rows(const std::string& run, const TrainState* newest, bool live,
                                  bool* ended_for_good) try {
  const std::string path = run + "/" + kRowsFile;
  const int64_t position = position_of(newest);
  if (!std::filesystem::exists(status_of(path))) {
    if (position > 0) {
      return {problem("rows",
                      path + ": missing; " + name_of(*newest) + " knows of " + std::to_string(position) +
                          " bytes of it; put it back, or a resume goes on without these rows",
                      ExitCode::kCheckpoint)};
    }
    return {fine("rows", std::string("there is no ") + kRowsFile + " yet")};
  }
  if (!std::filesystem::is_regular_file(status_of(path))) {
    return {problem("rows", path + ": is no plain file, so its rows cannot be read again; move it away",
                    ExitCode::kCheckpoint)};
  }
  Rows rows(position);
  rows.read(ReadFile(path));
  if (ended_for_good != nullptr) *ended_for_good = is_end_for_good(rows);
  return {examine_content(path, rows, newest, live), examine_end(rows, newest, live)};
} catch (const std::exception&) {
  return {failed("rows")};
}

}  // namespace gradstep
