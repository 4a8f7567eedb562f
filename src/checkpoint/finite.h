// Whether a tensor is finite, asked by one thread: a saver must not open a team of compute threads.
#pragma once

#include <ATen/core/Tensor.h>

#include "gradstep/checkpoint/checkpoint.h"

namespace gradstep {

// Contiguous CPU tensors of fp32, fp64, bf16 and fp16 are read by plain loops in the calling thread; others
// by ATen. True for types that are always finite.
[[nodiscard]] bool all_finite(const at::Tensor& tensor);

// False for types that have no NaN.
[[nodiscard]] bool has_nan(const at::Tensor& tensor);

// Throws Diverged naming a parameter or an average that is not finite, or a buffer that holds NaN.
void require_finite(const TrainState& state);

}  // namespace gradstep
