// Precision: what the forward pass computes in, and the guard that switches autocast on and reliably off
// again.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <string>

namespace gradstep {

enum class Precision { kFp32, kBf16, kFp16 };

// "fp32", "bf16", "fp16"
[[nodiscard]] std::string to_string(Precision precision);
// Throws ConfigError for any other text.
[[nodiscard]] Precision parse_precision(const std::string& text);

// Autocast for one device type on this thread, as Python's torch.autocast: off for kFp32. Restores the former
// state and clears the cache of cast weights when the outermost guard leaves, also by
// exception.
class AutocastGuard {
 public:
  // cache: keep casts of parameters for the guard's time. Evaluation passes false, so that it cannot touch
  // the cache of a training forward it may stand in.
  AutocastGuard(c10::DeviceType device, Precision precision, bool cache = true);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  c10::DeviceType device_;
  bool former_enabled_;
  bool former_cache_;
  c10::ScalarType former_dtype_;
};

}  // namespace gradstep
