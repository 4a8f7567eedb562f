// StopToken: a request to stop, set by a signal handler or another thread and read between two updates.
#pragma once

#include <atomic>

#include "gradstep/base/exit_code.h"

namespace gradstep {

// Any thread and any signal handler may call request(); the first request wins.
class StopToken {
 public:
  // Async-signal-safe: one lock-free compare and exchange.
  void request(ExitCode reason) noexcept {
    int none = kNone;
    reason_.compare_exchange_strong(none, static_cast<int>(reason));
  }
  [[nodiscard]] bool requested() const noexcept { return reason_.load(std::memory_order_relaxed) != kNone; }
  // REQUIRES: requested().
  [[nodiscard]] ExitCode reason() const noexcept { return static_cast<ExitCode>(reason_.load()); }

 private:
  static constexpr int kNone = -1;
  std::atomic<int> reason_{kNone};
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

}  // namespace gradstep
