// Rows as JSON lines. The one of each window costs about a microsecond, so that it can be written always.
// no torch
#include <charconv>
#include <chrono>
#include <system_error>

#include "gradstep/base/error.h"
#include "gradstep/report/sinks.h"
#include "report/append_file.h"
#include "report/event_text.h"
#include "report/json_text.h"
#include "report/row_json.h"

namespace gradstep {
namespace {

using Clock = std::chrono::steady_clock;

// Rows that follow each other faster are held back, but no longer than kMaxHeld.
constexpr auto kFastRows = std::chrono::milliseconds(50);
constexpr auto kMaxHeld = std::chrono::seconds(1);
constexpr size_t kMaxBytes = 256 * 1024;

void append_window(std::string& out, const WindowRow& row) {
  const StepReport& step = row.step;
  JsonLine line(out);
  line.add("window", step.window);
  line.add("update", step.update);
  line.add("epoch", step.epoch);
  // An empty window has neither.
  const bool is_empty = step.outcome == StepOutcome::kEmpty;
  is_empty ? line.add_null("loss") : line.add("loss", step.loss);
  line.add("lr", step.lr);
  is_empty ? line.add_null("grad_norm") : line.add("grad_norm", step.grad_norm);
  line.add("loss_scale", step.loss_scale);
  line.add("skipped", step.skipped());
  line.add("skipped_total", step.skipped_total);
  line.add("samples", row.samples);
  line.add("divisor", step.divisor);
  line.add("samples_per_s", row.samples_per_s);
  line.add("time_data", row.time_data);
  line.add("time_step", row.time_step);
  line.add("memory", row.memory);
  if (step.spike) line.add("spike", to_string(*step.spike));
  if (!step.first_non_finite.empty()) line.add("first_non_finite", step.first_non_finite);
  line.close();
}

void append_eval(std::string& out, const EvalRow& row) {
  JsonLine line(out);
  line.add("update", row.update);
  line.add("epoch", row.epoch);
  add_eval_values(line, row, /*averaged=*/false);
  line.add("val_samples", row.samples);
  line.add("time_eval", row.time_eval);
  line.add("best", row.best);
  add_eval_values(line, row, /*averaged=*/true);
  line.close();
}

void append_event(std::string& out, const EventRow& row) {
  const EventText text_of_event = event_text(row.event);
  JsonLine line(out);
  line.add("event", text_of_event.name);
  line.add("update", row.update);
  for (const auto& [key, text] : text_of_event.fields) line.add(key, text);
  line.close();
}

void append_end(std::string& out, const RunEnd& row) {
  JsonLine line(out);
  line.add("event", "end");
  line.add("update", row.update);
  line.add("total_updates", row.total_updates);
  line.add("samples", row.samples);
  line.add("skipped_total", row.skipped_total);
  line.add("seconds", row.seconds);
  line.add("reason", reason_text(row));
  if (row.best_eval) {
    line.add("best_update", row.best_eval->update);
    if (const std::optional<double> best = row.best_eval->value(row.best_metric))
      line.add("best_" + row.best_metric, *best);
  }
  line.add("model", row.model_path);
  line.close();
}

// How the row of a run's end begins.
std::string begin_of_end() {
  std::string text;
  JsonLine(text).add("event", "end");
  return text;
}

// The events among whole lines.
std::string event_lines(std::string_view lines) {
  std::string events;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n') + 1);
    if (line.starts_with("{\"event\":")) events += line;
    lines.remove_prefix(line.size());
  }
  return events;
}

}  // namespace

bool is_end_row(std::string_view line) { return line.starts_with(begin_of_end()); }

void add_eval_values(JsonLine& line, const EvalRow& row, bool averaged) {
  const std::vector<MetricValue> values = row.named_values();
  const size_t num_plain = 1 + row.metrics.size();
  const size_t end = averaged ? values.size() : num_plain;
  for (size_t i = averaged ? num_plain : 0; i < end; ++i) line.add(values[i].name, values[i].value);
}

std::string window_row_json(const WindowRow& row) {
  std::string text;
  append_window(text, row);
  return text;
}

std::string eval_row_json(const EvalRow& row) {
  std::string text;
  append_eval(text, row);
  return text;
}

std::string event_row_json(const EventRow& row) {
  std::string text;
  append_event(text, row);
  return text;
}

class JsonlSink::Impl {
 public:
  explicit Impl(const std::string& path) : file_(path), name_(path.substr(path.rfind('/') + 1)) {}

  ~Impl() {
    try {
      flush();
    } catch (const std::exception&) {
      // A caller who wants the error calls flush() or end() first.
    }
  }

  void window(const WindowRow& row) {
    append_window(buffer_, row);
    buffer_ += '\n';
    const Clock::time_point now = Clock::now();
    const bool fast = now - last_row_ < kFastRows;
    last_row_ = now;
    if (!fast || now - last_write_ >= kMaxHeld || buffer_.size() >= kMaxBytes) write(now);
  }

  // Rows that are rare are written at once, with all before them.
  template <class Row>
  void rare(void (*append)(std::string&, const Row&), const Row& row) {
    append(buffer_, row);
    buffer_ += '\n';
    flush();
  }

  void flush() {
    if (!buffer_.empty()) write(Clock::now());
  }

  void note_position(std::map<std::string, std::string>& positions) {
    flush();
    if (std::string warning = file_.mend(expected_); !warning.empty()) {
      warnings_.push_back(std::move(warning));
      expected_ = file_.size();
    }
    positions[name_] = std::to_string(file_.size());
  }

  [[nodiscard]] std::vector<std::string> take_warnings() { return std::exchange(warnings_, {}); }

  std::string rewind(const std::map<std::string, std::string>& positions, Events events) {
    std::string missing = rewound(positions, events);
    expected_ = file_.size();
    return missing;
  }

 private:
  std::string rewound(const std::map<std::string, std::string>& positions, Events events) {
    buffer_.clear();  // windows only: an event is written at once
    const auto found = positions.find(name_);
    if (found == positions.end()) {
      if (file_.size() == 0) return {};
      return "the rows of an earlier start, which left no checkpoint, are in " + file_.move_aside() + " now";
    }
    const int64_t position = parse_position(found->second);
    const std::string kept = events == Events::kKeep ? event_lines(file_.text_from(position)) : "";
    file_.cut(position);
    const int64_t size = file_.size();
    if (!kept.empty()) file_.append(kept);
    if (size >= position) return {};
    return name_ + " has " + std::to_string(size) + " of the " + std::to_string(position) +
           " bytes that the checkpoint knows of: rows of windows before it are missing";
  }

  int64_t parse_position(const std::string& text) const {
    int64_t position = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, position);
    if (error == std::errc() && stopped == end && position >= 0) return position;
    throw CheckpointError("the checkpoint has '" + text + "' as its position in " + name_ +
                          ", not a number of bytes; use another checkpoint");
  }

  void write(Clock::time_point now) {
    std::string lines;
    lines.swap(buffer_);  // a failed write is not tried again
    file_.append(lines);
    expected_ += static_cast<int64_t>(lines.size());
    lines.clear();
    buffer_.swap(lines);  // keep the memory
    last_write_ = now;
  }

  AppendFile file_;
  const std::string name_;           // without its folder
  int64_t expected_ = file_.size();  // bytes in the file, unless somebody else changes it
  std::vector<std::string> warnings_{};
  std::string buffer_;  // whole lines
  Clock::time_point last_row_{};
  Clock::time_point last_write_{};
};

JsonlSink::JsonlSink(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
JsonlSink::~JsonlSink() = default;
void JsonlSink::window(const WindowRow& row) { impl_->window(row); }
void JsonlSink::eval(const EvalRow& row) { impl_->rare(append_eval, row); }
void JsonlSink::event(const EventRow& row) { impl_->rare(append_event, row); }
void JsonlSink::end(const RunEnd& row) { impl_->rare(append_end, row); }
void JsonlSink::flush() { impl_->flush(); }
void JsonlSink::note_position(std::map<std::string, std::string>& positions) {
  impl_->note_position(positions);
}
std::vector<std::string> JsonlSink::take_warnings() { return impl_->take_warnings(); }
std::string JsonlSink::rewind(const std::map<std::string, std::string>& positions, Events events) {
  return impl_->rewind(positions, events);
}

}  // namespace gradstep
