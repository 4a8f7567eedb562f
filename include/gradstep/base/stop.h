// StopToken: a request to stop, set by a signal handler or another thread and read between two updates; and
// the handlers that set it.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>

#include "gradstep/base/error.h"

namespace gradstep {

/// A request to stop a run. Threads: any thread and any signal handler may call request(); the first request
/// wins, and later ones change nothing.
class StopToken {
 public:
  /// Asks the run to stop for `reason`, which becomes the exit code. Async-signal-safe: it reads a clock and
  /// makes two lock-free exchanges.
  void request(ExitCode reason) noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t never = 0;
    requested_at_ns_.compare_exchange_strong(never, int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec);
    int none = kNone;
    reason_.compare_exchange_strong(none, static_cast<int>(reason));
  }
  /// True after the first request.
  [[nodiscard]] bool requested() const noexcept { return reason_.load(std::memory_order_relaxed) != kNone; }
  /// The reason of the first request. REQUIRES: requested().
  [[nodiscard]] ExitCode reason() const noexcept { return static_cast<ExitCode>(reason_.load()); }
  /// Seconds since the first request. REQUIRES: requested().
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

/// "SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1" or "SIGUSR2"; "a request" for any other reason.
[[nodiscard]] constexpr const char* stop_name(ExitCode reason) {
  switch (reason) {
    case ExitCode::kSigint:
      return "SIGINT";
    case ExitCode::kSigterm:
      return "SIGTERM";
    case ExitCode::kSighup:
      return "SIGHUP";
    case ExitCode::kSigusr1:
      return "SIGUSR1";
    case ExitCode::kSigusr2:
      return "SIGUSR2";
    default:
      return "a request";
  }
}

/// Installs handlers for SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 that call stop.request(). A signal that
/// is ignored already, as by nohup, stays ignored; one that is blocked is unblocked. A second SIGINT ends the
/// process at once, with exit code 130. REQUIRES: `stop` lives until detach_stop_signals(); a process has one
/// token at a time.
void install_stop_signals(StopToken& stop);
/// Lets go of the token, which may be destroyed then: for a process on its way out, whose exit code is
/// settled. The other signals do nothing from here on; a SIGINT that is not the first still ends the
/// process at once.
void detach_stop_signals();

/// The handlers with a token of their own. Puts the former handlers back when it goes out of scope, on an
/// exception too. A process has one at a time.
class StopSignals {
 public:
  /// Calls install_stop_signals().
  StopSignals() { install_stop_signals(token_); }
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  /// What the signals ask to stop.
  [[nodiscard]] StopToken& token() { return token_; }

 private:
  StopToken token_;
};

/// Ignores SIGPIPE and SIGXFSZ in this process: if a reader goes away, or a file reaches the limit of
/// `ulimit -f`, write() fails and the process goes on.
void ignore_write_signals();

}  // namespace gradstep
