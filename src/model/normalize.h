// normalize_bytes: picture bytes to floats around zero.
#pragma once

#include <ATen/core/Tensor.h>

namespace gradstep {

// ((x / 255) - 0.5) / 0.5 in fp32, in that order of operations, on any device: uint8 (n, ...) -> fp32 of the
// same shape. Bit-equal to the three ATen operations. A tensor of floats comes back as it is.
[[nodiscard]] at::Tensor normalize_bytes(const at::Tensor& inputs);

}  // namespace gradstep
