// How the CPU or device computes: the precision of the forward pass, and the library behind matrix products.
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

enum class Matmul { kTorch, kOneDnn };

// "torch", "onednn"
[[nodiscard]] std::string to_string(Matmul matmul);
// Throws ConfigError for any other text.
[[nodiscard]] Matmul parse_matmul(const std::string& text);

// Whether this libtorch has oneDNN's linear kernel.
[[nodiscard]] bool has_onednn();

// From now on, in the whole process: aten::mm and aten::addmm of fp32 CPU tensors that are large enough go to
// oneDNN (or back to libtorch's choice). On AMD processors MKL keeps to AVX2 and oneDNN uses AVX-512, which
// doubles the speed. Results differ from libtorch's in the last bits, and are the same from run to run. Not
// thread-safe: call it while nothing computes.
void use_matmul(Matmul matmul);
[[nodiscard]] Matmul current_matmul();

}  // namespace gradstep
