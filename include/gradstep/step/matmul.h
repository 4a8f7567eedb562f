// Which library computes fp32 matrix products on the CPU: the one libtorch calls (MKL), or oneDNN, which
// libtorch carries too.
#pragma once

#include <string>

namespace gradstep {

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
