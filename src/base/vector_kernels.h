// The few loops of our own that must run at the speed of the vector units. Built with -O3, for several x86-64
// levels.
#pragma once

#include <cstdint>

namespace gradstep {

// out[i] = ((bytes[i] / 255) - 0.5) / 0.5 in fp32, rounded after each operation.
void normalize_bytes_kernel(const uint8_t* bytes, float* out, int64_t n);

// Sum of x[i]^2 over n floats, in 32 interleaved fp32 sums added up in fp64; infinite or NaN when an element
// is, or on overflow.
[[nodiscard]] double sum_of_squares_kernel(const float* x, int64_t n);

}  // namespace gradstep
