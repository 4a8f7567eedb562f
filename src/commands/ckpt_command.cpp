// ckpt ls and ckpt verify.
#include "commands/ckpt_command.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/finite.h"
#include "checkpoint/manifest.h"
#include "checkpoint/number_json.h"
#include "commands/ckpt_path.h"
#include "commands/spell_flags.h"
#include "commands/terminal.h"
#include "gradstep/base/error.h"
#include "io/read_file.h"
#include "report/format.h"

namespace gradstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// One checkpoint, as far as it can be read.
struct Entry {
  std::string path;
  uint64_t bytes = 0;
  std::time_t written = 0;
  std::optional<TrainState> state;  // without tensors
  std::string broken;               // empty: it is not
  bool accessible = true;           // false: `broken` says why it cannot be read
  bool latest = false;
  bool best = false;
};

std::time_t written_at(const std::string& path) {
  std::error_code error;
  fs::file_time_type time = fs::last_write_time(fs::path(path) / kManifestName, error);
  if (error) time = fs::last_write_time(path, error);
  if (error) return 0;
  return std::chrono::system_clock::to_time_t(std::chrono::file_clock::to_sys(time));
}

Entry look_at(const std::string& path, bool verify) {
  Entry entry{.path = path, .bytes = folder_bytes(path), .written = written_at(path)};
  try {
    if (verify) verify_checkpoint(path);
    entry.state = read_checkpoint_summary(path);
  } catch (const AccessError& error) {
    entry.broken = error.what();
    entry.accessible = false;
  } catch (const CheckpointError& error) {
    entry.broken = error.what();
  }
  return entry;
}

std::vector<Entry> look_at_all(const CkptLsOptions& options) {
  std::vector<Entry> entries;
  for (const std::string& path : checkpoints_at(options.path)) {
    entries.push_back(look_at(path, options.verify));
  }
  // What cannot be read may be whole, so no older one is the latest then.
  const auto latest = std::ranges::find_if(entries.rbegin(), entries.rend(), [](const Entry& entry) {
    return entry.state.has_value() || !entry.accessible;
  });
  if (latest == entries.rend()) return entries;
  latest->latest = true;
  if (!latest->state) return entries;
  const std::optional<EvalRow> best = latest->state->best_eval;
  for (Entry& entry : entries) {
    entry.best = best && entry.state && entry.state->engine.counters.updates == best->update;
  }
  return entries;
}

std::string time_text(std::time_t time, const char* format, bool utc) {
  std::tm parts{};
  utc ? gmtime_r(&time, &parts) : localtime_r(&time, &parts);
  char text[40];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

std::string marks(const Entry& entry) {
  if (!entry.accessible) return (entry.latest ? "latest, " : "") + spell_flags(entry.broken);
  if (!entry.broken.empty()) return "broken: " + spell_flags(entry.broken);
  if (entry.latest && entry.best) return "latest, best";
  return entry.latest ? "latest" : entry.best ? "best" : "";
}

// The metric of the column beside the loss: that by which the run chooses its best, or the first one of its
// task. Empty: there is none.
std::string metric_of(const std::vector<Entry>& entries) {
  std::string first;
  for (const Entry& entry : entries) {
    if (!entry.state) continue;
    if (entry.state->best_metric != "val_loss") return entry.state->best_metric;
    const std::optional<EvalRow>& eval = entry.state->last_eval;
    if (first.empty() && eval && !eval->metrics.empty()) first = "val_" + eval->metrics.front().name;
  }
  return first;
}

std::vector<std::string> cells(const Entry& entry, const std::string& metric) {
  std::vector<std::string> row{name_of(entry.path), "-", "-", "-"};
  std::string value = "-";
  std::string loss = "-";
  if (entry.state) {
    const TrainState& state = *entry.state;
    row[1] = std::to_string(state.engine.counters.updates);
    if (state.total_updates > 0) row[1] += " of " + std::to_string(state.total_updates);
    row[2] = std::to_string(state.next.epoch);
    row[3] = std::to_string(state.engine.counters.skipped_total);
    if (state.last_eval) {
      if (const auto number = state.last_eval->value(metric)) value = fixed_text(*number, 4);
      loss = fixed_text(state.last_eval->val_loss, 4);
    }
  }
  if (!metric.empty()) row.push_back(value);
  row.push_back(loss);
  row.push_back(entry.accessible ? bytes_text(static_cast<int64_t>(entry.bytes)) : "-");
  row.push_back(time_text(entry.written, "%Y-%m-%d %H:%M:%S", /*utc=*/false));
  row.push_back(marks(entry));
  return row;
}

std::string table_text(const std::vector<Entry>& entries) {
  const std::string metric = metric_of(entries);
  std::vector<std::string> head{"checkpoint", "update", "epoch", "skipped"};
  if (!metric.empty()) head.push_back(metric);
  for (const char* name : {"val_loss", "size", "written", ""}) head.emplace_back(name);
  std::vector<std::vector<std::string>> rows{std::move(head)};
  for (const Entry& entry : entries) rows.push_back(cells(entry, metric));
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

Json entry_json(const Entry& entry) {
  Json json{{"name", name_of(entry.path)},
            {"path", entry.path},
            {"bytes", entry.bytes},
            {"written", time_text(entry.written, "%Y-%m-%dT%H:%M:%SZ", /*utc=*/true)},
            {"latest", entry.latest},
            {"best", entry.best},
            {"broken", entry.broken.empty() ? Json() : Json(entry.broken)}};
  if (!entry.state) return json;
  const TrainState& state = *entry.state;
  json["update"] = state.engine.counters.updates;
  json["total_updates"] = state.total_updates;
  json["epoch"] = state.next.epoch;
  json["windows"] = state.engine.counters.windows;
  json["skipped_total"] = state.engine.counters.skipped_total;
  if (state.last_eval) {
    for (const MetricValue& each : state.last_eval->named_values()) json[each.name] = number_json(each.value);
  }
  return json;
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

}  // namespace

int run_ckpt_ls(const CkptLsOptions& options) {
  const std::vector<Entry> entries = look_at_all(options);
  if (options.json) {
    Json list = Json::array();
    for (const Entry& entry : entries) list.push_back(entry_json(entry));
    write_stdout(dumped(Json{{"path", options.path}, {"checkpoints", list}}));
  } else {
    write_stdout(table_text(entries));
  }
  return static_cast<int>(ExitCode::kOk);
}

int run_ckpt_verify(const CkptVerifyOptions& options) {
  std::vector<std::string> paths = checkpoints_at(options.path);
  Json list = Json::array();
  std::vector<std::string> broken;
  std::set<std::string> seen;
  constexpr int kMostVanished = 100;
  int num_vanished = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string path = paths[i];
    if (!seen.insert(path).second) continue;
    std::string wrong;
    try {
      require_finite(read_checkpoint(path));  // more than the hashes: what they seal must make sense too
    } catch (const Error& error) {
      if (path != options.path && num_vanished < kMostVanished &&
          !fs::exists(status_of(path))) {  // a run's retention took it away: list again
        ++num_vanished;
        for (std::string& each : checkpoints_at(options.path)) paths.push_back(std::move(each));
        continue;
      }
      wrong = error.what();
      broken.push_back(wrong);
    }
    const uint64_t bytes = folder_bytes(path);
    list.push_back(Json{{"name", name_of(path)},
                        {"path", path},
                        {"ok", wrong.empty()},
                        {"bytes", bytes},
                        {"broken", wrong.empty() ? Json() : Json(wrong)}});
    if (options.json || options.quiet) continue;
    write_stdout(name_of(path) +
                 (wrong.empty() ? " ok (" + bytes_text(static_cast<int64_t>(bytes)) + ")"
                                : " broken: " + spell_flags(wrong)) +
                 "\n");
  }
  if (options.json) write_stdout(dumped(Json{{"path", options.path}, {"checkpoints", list}}));
  if (broken.empty()) return static_cast<int>(ExitCode::kOk);
  if (list.size() == 1) throw CheckpointError(broken.front());
  throw CheckpointError(options.path + ": " + std::to_string(broken.size()) + " of " +
                        std::to_string(list.size()) +
                        " checkpoints are broken; the first: " + broken.front());
}

}  // namespace gradstep
