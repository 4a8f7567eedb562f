// no torch
// Signal handlers: each asks the token to stop (atomics and clock_gettime), and the second SIGINT is an
// _exit. All of it is async-signal-safe.
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

#include "gradstep/base/stop.h"

namespace gradstep {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

std::array<struct sigaction, kSignals.size()> g_before{};  // what handled them before

std::atomic<StopToken*> g_stop{nullptr};
std::atomic<bool> g_interrupted{false};

static_assert(std::atomic<StopToken*>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
              std::atomic<int>::is_always_lock_free);

ExitCode reason_of(int signal_number) {
  switch (signal_number) {
    case SIGINT:
      return ExitCode::kSigint;
    case SIGHUP:
      return ExitCode::kSighup;
    case SIGUSR1:
      return ExitCode::kSigusr1;
    case SIGUSR2:
      return ExitCode::kSigusr2;
    default:
      return ExitCode::kSigterm;
  }
}

void handle(int signal_number) {
  if (signal_number == SIGINT && g_interrupted.exchange(true)) _exit(static_cast<int>(ExitCode::kSigint));
  if (StopToken* stop = g_stop.load()) stop->request(reason_of(signal_number));
}

}  // namespace

void install_stop_signals(StopToken& stop) {
  g_interrupted = false;
  g_stop = &stop;
  struct sigaction action{};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;  // reads and writes go on; the loop looks at the token by itself
  sigemptyset(&action.sa_mask);
  sigset_t handled;
  sigemptyset(&handled);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction before{};
    sigaction(kSignals[i], nullptr, &before);
    if (before.sa_handler != handle) g_before[i] = before;
    if (before.sa_handler == SIG_IGN) continue;  // by nohup, or a shell that started it in the background
    sigaction(kSignals[i], &action, nullptr);
    sigaddset(&handled, kSignals[i]);
  }
  // A parent may have blocked them, and a blocked signal never comes.
  pthread_sigmask(SIG_UNBLOCK, &handled, nullptr);
}

void detach_stop_signals() { g_stop = nullptr; }

StopSignals::~StopSignals() {
  detach_stop_signals();
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &g_before[i], nullptr);
}

void ignore_write_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace gradstep
