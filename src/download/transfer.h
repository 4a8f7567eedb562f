// transfer: one HTTP request whose body goes into a file, from its start or from where an earlier one
// stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace gradstep {

struct TransferOptions {
  std::string url;
  int fd = -1;         // written at its offsets; truncated when the server begins at 0
  uint64_t begin = 0;  // bytes that are there already
  uint64_t size = 0;   // expected bytes of the whole file; 0: unknown
  double stall_seconds = 30;
  std::function<void(uint64_t done, uint64_t total)> on_progress;
};

struct TransferResult {
  enum class Outcome {
    kDone,     // the server says that this was all
    kRetry,    // may work later; what came is kept
    kUseless,  // what is in the file, or what the server offers, is of the wrong size or range
    kFatal,    // no other try will help
  };
  Outcome outcome = Outcome::kDone;
  std::string reason;    // one line; empty when done
  bool resumed = false;  // the file begins with bytes of an earlier transfer
};

// Throws std::system_error when the file cannot be written, and whatever on_progress throws.
[[nodiscard]] TransferResult transfer(const TransferOptions& options);

}  // namespace gradstep
