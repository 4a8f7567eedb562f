// The queue holds calls. The thread takes all at once, so run and sink share a lock a few times a second.
// no torch
#include "report/best_effort.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>

#include "base/error_text.h"
#include "gradstep/base/error.h"

namespace gradstep {

using Calls = std::deque<std::function<void(Sink&)>>;

namespace {

// Clocks count nanoseconds in 64 bits: for ever becomes 30 years.
BestEffortOptions checked(const std::string& name, BestEffortOptions options) {
  constexpr double kForEver = 1e9;
  for (double* seconds : {&options.batch_seconds, &options.close_seconds}) {
    if (!(*seconds >= 0))
      throw ConfigError(name +
                        ": batch_seconds and close_seconds must be 0 or more; infinity waits for ever");
    *seconds = std::min(*seconds, kForEver);
  }
  return options;
}

}  // namespace

struct BestEffortSink::State {
  State(std::string sink_name, std::unique_ptr<Sink> sink, const BestEffortOptions& sink_options)
      : name(std::move(sink_name)), options(checked(name, sink_options)), inner(std::move(sink)) {}

  void warn(const std::string& text) {
    warnings.push_back(name + ": " + text);
    has_warnings = true;
  }

  const std::string name;
  const BestEffortOptions options;
  std::unique_ptr<Sink> inner;  // the thread's, from its start to its end

  std::mutex mutex;  // for all below
  std::condition_variable wake, ended;
  Calls calls;
  bool is_urgent = false;
  bool is_closing = false;
  bool has_ended = false;  // the thread is through with the inner sink
  bool has_failed = false;
  int64_t num_dropped = 0;
  std::vector<std::string> warnings;
  std::atomic<bool> has_warnings{false};  // so that asking costs no lock
};

// What the thread does.
class BestEffortSink::Worker {
 public:
  static void run(const std::shared_ptr<State>& state) {
    while (take_batch(*state)) {
    }
    state->inner.reset();
    const std::lock_guard lock(state->mutex);
    state->has_ended = true;
    state->ended.notify_all();
  }

 private:
  // False once there will be no more rows.
  static bool take_batch(State& state) {
    std::unique_lock lock(state.mutex);
    state.wake.wait(lock, [&] { return !state.calls.empty() || state.is_closing; });
    state.wake.wait_for(lock, std::chrono::duration<double>(state.options.batch_seconds),
                        [&] { return state.is_urgent || state.is_closing; });
    Calls batch = std::exchange(state.calls, {});
    state.is_urgent = false;
    const bool is_last = state.is_closing;
    lock.unlock();
    const std::string error = deliver(batch, *state.inner);
    batch.clear();
    lock.lock();
    if (error.empty()) return !is_last;
    state.has_failed = true;
    state.calls.clear();
    state.warn(error + "; the run goes on without it");
    return false;
  }

  // What went wrong; empty: nothing.
  static std::string deliver(const Calls& calls, Sink& sink) {
    try {
      for (const auto& call : calls) call(sink);
      sink.flush();
      return "";
    } catch (const std::exception& error) {
      return one_line(error);
    } catch (...) {
      return "failed for an unknown reason";
    }
  }
};

BestEffortSink::BestEffortSink(std::string name, std::unique_ptr<Sink> inner, BestEffortOptions options)
    : state_(std::make_shared<State>(std::move(name), std::move(inner), options)) {
  try {
    thread_ = std::thread([state = state_] { Worker::run(state); });
  } catch (const std::system_error& error) {
    state_->has_failed = state_->has_ended = true;
    state_->warn(std::string("no thread: ") + one_line(error) + "; the run goes on without it");
  }
}

BestEffortSink::~BestEffortSink() { close(); }

template <class Call>
void BestEffortSink::put(bool is_window, bool is_urgent, Call call) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (state.is_closing || state.has_failed) return;
  const size_t max_rows = state.options.max_rows;
  if (state.calls.size() >= (is_window ? max_rows : 2 * max_rows)) {
    if (state.num_dropped++ == 0) state.warn("is too slow: rows are dropped");
    return;
  }
  state.calls.emplace_back(std::move(call));
  if (is_urgent || state.calls.size() == (max_rows + 1) / 2) state.is_urgent = true;
  // Between the first row and an urgent one the thread sleeps.
  if (state.calls.size() == 1 || state.is_urgent) state.wake.notify_one();
}

void BestEffortSink::begin(const RunStart& start) {
  put(false, true, [start](Sink& sink) { sink.begin(start); });
}
void BestEffortSink::window(const WindowRow& row) {
  put(true, false, [row](Sink& sink) { sink.window(row); });
}
void BestEffortSink::eval(const EvalRow& row) {
  put(false, true, [row](Sink& sink) { sink.eval(row); });
}
void BestEffortSink::event(const EventRow& row) {
  put(false, true, [row](Sink& sink) { sink.event(row); });
}
void BestEffortSink::end(const RunEnd& row) {
  put(false, true, [row](Sink& sink) { sink.end(row); });
}
void BestEffortSink::flush() {
  put(false, true, [](Sink& sink) { sink.flush(); });
}
void BestEffortSink::note_position(std::map<std::string, std::string>& /*positions*/) { flush(); }

std::vector<std::string> BestEffortSink::take_warnings() {
  if (!state_->has_warnings) return {};
  const std::lock_guard lock(state_->mutex);
  state_->has_warnings = false;
  return std::exchange(state_->warnings, {});
}

void BestEffortSink::close() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (std::exchange(state.is_closing, true)) return;
  state.wake.notify_one();
  const auto limit = std::chrono::duration<double>(state.options.close_seconds);
  const bool has_ended = state.ended.wait_for(lock, limit, [&] { return state.has_ended; });
  if (!has_ended) state.warn("did not finish in time: its last rows are missing");
  if (state.num_dropped > 0)
    state.warn("lost " + std::to_string(state.num_dropped) + " rows, as it was too slow");
  lock.unlock();
  if (!thread_.joinable()) return;
  has_ended ? thread_.join() : thread_.detach();
}

}  // namespace gradstep
