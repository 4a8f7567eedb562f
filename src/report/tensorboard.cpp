// Rows as Event messages. Field numbers are those of TensorBoard's event.proto, summary.proto, tensor.proto.
// no torch
#include <chrono>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "gradstep/report/sinks.h"
#include "report/event_file.h"
#include "report/protobuf.h"

namespace gradstep {
namespace {

// Event
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7, kSource = 10;
// Summary and Summary.Value
constexpr uint32_t kValue = 1, kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
constexpr uint32_t kStatus = 1;  // of SessionLog
constexpr int64_t kStart = 1;

constexpr std::string_view kValPrefix = "val/";
constexpr std::string_view kValEmaPrefix = "val_ema/";

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

ProtoWriter event_at(int64_t step) {
  ProtoWriter event;
  event.real(kWallTime, wall_time());
  event.integer(kStep, step);
  return event;
}

// Several points of one step.
class Points {
 public:
  void add(std::string_view tag, double number) {
    ProtoWriter value;
    value.bytes(kTag, tag);
    value.real(kSimpleValue, static_cast<float>(number));
    summary_.bytes(kValue, value.message());
  }

  void add_text(std::string_view tag, std::string_view text) {
    constexpr uint32_t kDtype = 1, kShape = 2, kStringValue = 8;
    constexpr int64_t kString = 7;
    ProtoWriter tensor, plugin, metadata, value;
    tensor.integer(kDtype, kString);
    tensor.bytes(kShape, "");  // a scalar
    tensor.bytes(kStringValue, text);
    plugin.bytes(/*plugin_name*/ 1, "text");
    metadata.bytes(/*plugin_data*/ 1, plugin.message());
    value.bytes(kTag, tag);
    value.bytes(kTensor, tensor.message());
    value.bytes(kMetadata, metadata.message());
    summary_.bytes(kValue, value.message());
  }

  [[nodiscard]] std::string event(int64_t step) const {
    ProtoWriter event = event_at(step);
    event.bytes(kSummary, summary_.message());
    return event.message();
  }

 private:
  ProtoWriter summary_;
};

std::string version_event() {
  ProtoWriter source, event;
  source.bytes(/*writer*/ 1, "gradstep");
  event.real(kWallTime, wall_time());
  event.bytes(kFileVersion, "brain.Event:2");
  event.bytes(kSource, source.message());
  return event.message();
}

std::string start_event(int64_t step) {
  ProtoWriter log, event = event_at(step);
  log.integer(kStatus, kStart);
  event.bytes(kSessionLog, log.message());
  return event.message();
}

// What of an event decides whether an evaluation is known.
struct EventFacts {
  int64_t step = 0;
  bool is_start = false;
  bool has_eval = false;
};

bool is_eval_point(std::string_view value) {
  for (ProtoReader reader(value); reader.next();) {
    if (reader.field() == kTag && reader.bytes().starts_with(kValPrefix)) return true;
  }
  return false;
}

EventFacts facts_of(std::string_view record) {
  EventFacts facts;
  for (ProtoReader event(record); event.next();) {
    if (event.field() == kStep) facts.step = event.integer();
    if (event.field() == kSessionLog) facts.is_start = true;
    if (event.field() != kSummary) continue;
    for (ProtoReader summary(event.bytes()); summary.next();)
      facts.has_eval = facts.has_eval || (summary.field() == kValue && is_eval_point(summary.bytes()));
  }
  return facts;
}

// Whether TensorBoard shows an evaluation at this step, after all that was dropped.
bool shows_eval(const std::string& folder, int64_t step) {
  bool shows = false;
  for (const std::string& path : event_files(folder)) {
    for_each_record(path, [&](std::string_view record) {
      const EventFacts facts = facts_of(record);
      if (facts.is_start && facts.step <= step) shows = false;
      if (facts.has_eval && facts.step == step) shows = true;
    });
  }
  return shows;
}

// A table in Markdown.
std::string settings_text(const RunStart& start) {
  const auto row = [](const std::string& key, const std::string& value) {
    std::string text = "| " + key + " | ";
    for (const char c : value) text += c == '|' ? std::string("\\|") : std::string(1, c);
    return text + " |\n";
  };
  std::string text = row("setting", "value") + "| --- | --- |\n";
  for (const auto& [key, value] : start.settings) text += row(key, value);
  if (!start.resumed_from.empty()) text += row("(resumed from)", start.resumed_from);
  return text;
}

// Indented, so that Markdown keeps its columns.
std::string plan_text(const RunPlan& plan) {
  std::string text;
  bool at_start = true;
  for (const char c : format_plan(plan)) {
    if (at_start) text += "    ";
    text += c;
    at_start = c == '\n';
  }
  return text;
}

}  // namespace

class TensorBoardSink::Impl {
 public:
  explicit Impl(std::string folder) : folder_(std::move(folder)) {}

  ~Impl() {
    try {
      flush();
    } catch (const std::exception&) {
      // A caller who wants the error calls flush() or end() first.
    }
  }

  void begin(const RunStart& start) {
    texts_ = Points();
    texts_.add_text("settings", settings_text(start));
    texts_.add_text("plan", plan_text(start.plan));
    go_back_to(start.first_update);
    flush();
  }

  void window(const WindowRow& row) {
    if (row.step.skipped()) return;
    Points points;
    points.add("train/loss", row.step.loss);
    points.add("train/lr", row.step.lr);
    points.add("train/grad_norm", row.step.grad_norm);
    if (row.step.loss_scale != 1) points.add("train/loss_scale", row.step.loss_scale);
    if (std::isfinite(row.samples_per_s)) points.add("perf/samples_per_s", row.samples_per_s);
    file().append(points.event(row.step.update));
  }

  // Windows may be skipped between two evaluations, and an evaluation made after the last checkpoint comes
  // again.
  void eval(const EvalRow& row) {
    if (evaluated_ == row.update) return;
    evaluated_ = row.update;
    if (std::exchange(went_back_to_, std::nullopt) == row.update) {
      flush();
      if (shows_eval(folder_, row.update)) return;
    }
    Points points;
    const auto add = [&](std::string_view prefix, std::string_view name, double value) {
      points.add(std::string(prefix) + std::string(name), value);
    };
    add(kValPrefix, "loss", row.val_loss);
    for (const MetricValue& metric : row.metrics) add(kValPrefix, metric.name, metric.value);
    if (row.ema_val_loss) add(kValEmaPrefix, "loss", *row.ema_val_loss);
    for (const MetricValue& metric : row.ema_metrics) add(kValEmaPrefix, metric.name, metric.value);
    file().append(points.event(row.update));
  }

  void event(const EventRow& row) {
    if (std::holds_alternative<RolledBack>(row.event)) go_back_to(row.update);
  }

  void flush() {
    if (file_) file_->flush();
  }

 private:
  EventFile& file() {
    if (!file_) {
      file_.emplace(folder_);
      file_->append(version_event());
    }
    return *file_;
  }

  // TensorBoard drops all points from the step of a start event on.
  void go_back_to(int64_t update) {
    const int64_t step = update == 0 ? 0 : update + 1;
    file().append(start_event(step));
    file().append(texts_.event(step));
    went_back_to_ = update;
    evaluated_.reset();
  }

  const std::string folder_;
  std::optional<EventFile> file_;
  Points texts_;
  std::optional<int64_t> went_back_to_;  // until the next evaluation
  std::optional<int64_t> evaluated_;     // the last one
};

TensorBoardSink::TensorBoardSink(std::string folder) : impl_(std::make_unique<Impl>(std::move(folder))) {}
TensorBoardSink::~TensorBoardSink() = default;
void TensorBoardSink::begin(const RunStart& start) { impl_->begin(start); }
void TensorBoardSink::window(const WindowRow& row) { impl_->window(row); }
void TensorBoardSink::eval(const EvalRow& row) { impl_->eval(row); }
void TensorBoardSink::event(const EventRow& row) { impl_->event(row); }
void TensorBoardSink::end(const RunEnd& /*row*/) { impl_->flush(); }
void TensorBoardSink::flush() { impl_->flush(); }

}  // namespace gradstep
