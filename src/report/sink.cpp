// The fan-out of rows over several sinks.
// no torch
#include "gradstep/report/sink.h"

#include <exception>

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

}  // namespace

SinkList::SinkList() = default;
SinkList::~SinkList() { close(); }

void SinkList::add(std::unique_ptr<Sink> sink) { sinks_.push_back(std::move(sink)); }

void SinkList::add_best_effort(const std::string& name, std::unique_ptr<Sink> sink,
                               BestEffortOptions options) {
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
