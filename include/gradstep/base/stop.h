// StopToken: a request to stop, set by a signal handler or another thread and read between two updates; and
// the handlers that set it.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include "gradstep/base/error.h"

namespace gradstep {

// Any thread and any signal handler may call request(); the first request wins.
class StopToken {
 public:
  // Async-signal-safe: a clock and two lock-free exchanges.
  void request(ExitCode reason) noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t never = 0;
    requested_at_ns_.compare_exchange_strong(never, int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
    int none = kNone;
    reason_.compare_exchange_strong(none, static_cast<int>(reason));
  }
  [[nodiscard]] bool requested() const noexcept { return reason_.load(std::memory_order_relaxed) != kNone; }
  // REQUIRES: requested().
  [[nodiscard]] ExitCode reason() const noexcept { return static_cast<ExitCode>(reason_.load()); }
  // Since the first request. REQUIRES: requested().
  [[nodiscard]] double seconds_since() const noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec - requested_at_ns_.load()) *
           1e-9;
  }

 private:
  static constexpr int kNone = -1;
  std::atomic<int> reason_{kNone};
  std::atomic<int64_t> requested_at_ns_{0};
};

// "SIGINT", "SIGTERM", "SIGUSR1"; "a request" for any other reason.
[[nodiscard]] constexpr const char* stop_name(ExitCode reason) {
  switch (reason) {
    case ExitCode::kSigint:
      return "SIGINT";
    case ExitCode::kSigterm:
      return "SIGTERM";
    case ExitCode::kSigusr1:
      return "SIGUSR1";
    default:
      return "a request";
  }
}

// From here on the three signals call stop.request(); a second SIGINT leaves the process at once with 130.
// REQUIRES: `stop` lives until detach_stop_signals(); one token at a time in a process.
void install_stop_signals(StopToken& stop);
// For a process on its way out, whose exit code is settled: SIGTERM and SIGUSR1 do nothing any more, and a
// SIGINT that is not the first still leaves at once. `stop` may die.
void detach_stop_signals();

// A reader that goes away, and a file that reaches the limit of ulimit -f, are errors of write() then, not
// the end of the process.
void ignore_write_signals();

}  // namespace gradstep
