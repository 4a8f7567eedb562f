// The fan-out of rows over several sinks.
// no torch
#include <exception>

#include "gradstep/base/error.h"
#include "gradstep/report/sinks.h"
#include "report/averaged.h"
#include "report/best_effort.h"

namespace gradstep {
namespace {

// The end of a run must reach every sink: the first error is thrown after all were tried.
template <class Call>
void call_all(const std::vector<std::unique_ptr<Sink>>& sinks, Call call) {
  std::exception_ptr first;
  for (const std::unique_ptr<Sink>& sink : sinks) {
    try {
      call(*sink);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

const std::string kAveraged = kAveragedPrefix;
const std::string kMetric = "val_";
const std::string kLoss = "loss";

}  // namespace

std::vector<MetricValue> EvalRow::named_values() const {
  std::vector<MetricValue> values{{kMetric + kLoss, val_loss}};
  for (const MetricValue& metric : metrics) values.push_back({kMetric + metric.name, metric.value});
  if (ema_val_loss) values.push_back({kAveraged + kMetric + kLoss, *ema_val_loss});
  for (const MetricValue& metric : ema_metrics)
    values.push_back({kAveraged + kMetric + metric.name, metric.value});
  return values;
}

std::optional<double> EvalRow::value(const std::string& name) const {
  for (const MetricValue& each : named_values()) {
    if (each.name == name) return each.value;
  }
  return std::nullopt;
}

bool EvalRow::set_value(const std::string& name, double number) {
  const bool averaged = name.starts_with(kAveraged);
  const std::string rest = averaged ? name.substr(kAveraged.size()) : name;
  if (!rest.starts_with(kMetric) || rest.size() == kMetric.size()) return false;
  const std::string metric = rest.substr(kMetric.size());
  if (metric != kLoss) {
    (averaged ? ema_metrics : metrics).push_back({metric, number});
  } else if (averaged) {
    ema_val_loss = number;
  } else {
    val_loss = number;
  }
  return true;
}

SinkList::SinkList() = default;
SinkList::~SinkList() { close(); }

void SinkList::add(std::unique_ptr<Sink> sink) {
  if (!sink) throw ConfigError("SinkList::add: there is no sink; give one");
  sinks_.push_back(std::move(sink));
}

void SinkList::add_best_effort(const std::string& name, std::unique_ptr<Sink> sink,
                               BestEffortOptions options) {
  if (!sink) throw ConfigError("SinkList::add_best_effort: there is no sink; give one");
  auto best_effort = std::make_unique<BestEffortSink>(name, std::move(sink), options);
  best_effort_.push_back(best_effort.get());
  sinks_.push_back(std::move(best_effort));
}

void SinkList::close() {
  for (BestEffortSink* sink : best_effort_) sink->close();
}

std::vector<std::string> SinkList::take_warnings() {
  std::vector<std::string> warnings;
  for (const std::unique_ptr<Sink>& sink : sinks_) {
    for (std::string& warning : sink->take_warnings()) warnings.push_back(std::move(warning));
  }
  return warnings;
}

void SinkList::begin(const RunStart& start) {
  for (const std::unique_ptr<Sink>& sink : sinks_) sink->begin(start);
}

void SinkList::window(const WindowRow& row) {
  for (const std::unique_ptr<Sink>& sink : sinks_) sink->window(row);
}

void SinkList::eval(const EvalRow& row) {
  for (const std::unique_ptr<Sink>& sink : sinks_) sink->eval(row);
}

void SinkList::event(const EventRow& row) {
  for (const std::unique_ptr<Sink>& sink : sinks_) sink->event(row);
}

void SinkList::end(const RunEnd& row) {
  call_all(sinks_, [&](Sink& sink) { sink.end(row); });
}

void SinkList::note_position(std::map<std::string, std::string>& positions) {
  for (const std::unique_ptr<Sink>& sink : sinks_) sink->note_position(positions);
}

std::string SinkList::rewind(const std::map<std::string, std::string>& positions, Events events) {
  std::string missing;
  for (const std::unique_ptr<Sink>& sink : sinks_) {
    const std::string each = sink->rewind(positions, events);
    if (!each.empty()) missing += (missing.empty() ? "" : "; ") + each;
  }
  return missing;
}

void SinkList::flush() {
  call_all(sinks_, [](Sink& sink) { sink.flush(); });
}

}  // namespace gradstep
