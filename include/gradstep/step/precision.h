// How the CPU or device computes: the precision of the forward pass, and the library that multiplies
// matrices.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <string>

namespace gradstep {

/// What the forward pass computes in. Parameters, gradients and moments stay fp32.
enum class Precision {
  kFp32,  ///< no autocast
  kBf16,  ///< autocast to bfloat16
  kFp16   ///< autocast to float16, with a loss scale (GradScalerOptions)
};

/// "fp32", "bf16" or "fp16".
[[nodiscard]] std::string to_string(Precision precision);
/// Reads "fp32", "bf16" or "fp16". Throws ConfigError for any other text.
[[nodiscard]] Precision parse_precision(const std::string& text);

/// Turns autocast on for one device type on this thread while it lives, or off for kFp32. Its destructor
/// restores the former state, and that of the outermost guard clears the cache of cast weights. PyTorch:
/// torch.autocast.
class AutocastGuard {
 public:
  /// With `cache`, casts of parameters are kept while the guard lives. Evaluation passes false, so that it
  /// does not touch the cache of a training forward around it.
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

/// The library that computes large fp32 matrix products on a CPU.
enum class Matmul {
  kTorch,  ///< LibTorch's choice
  kOneDnn  ///< oneDNN, which LibTorch brings along
};

/// "torch" or "onednn".
[[nodiscard]] std::string to_string(Matmul matmul);
/// Reads "torch" or "onednn". Throws ConfigError for any other text.
[[nodiscard]] Matmul parse_matmul(const std::string& text);

/// True if this LibTorch has the linear kernel of oneDNN.
[[nodiscard]] bool has_onednn();

/// Chooses the library for aten::mm and aten::addmm of fp32 CPU tensors that are large enough, in the whole
/// process and from now on. On AMD processors MKL keeps to AVX2 while oneDNN uses AVX-512, which doubles the
/// speed. The results of the two differ in the last bits; those of one are the same from run to run. Threads:
/// not safe, call it while nothing computes. Throws ConfigError for kOneDnn without has_onednn().
void use_matmul(Matmul matmul);
/// What use_matmul() chose last; kTorch at the start.
[[nodiscard]] Matmul current_matmul();

}  // namespace gradstep
