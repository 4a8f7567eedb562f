// no torch
// Plain loops that the compiler turns into vector code; the loader picks the best of the clones for the
// processor.
#include "base/vector_kernels.h"

// Sanitizers run before the loader has resolved such functions, so there the plain one serves.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define GRADSTEP_CPU_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define GRADSTEP_CPU_CLONES
#endif

namespace gradstep {

GRADSTEP_CPU_CLONES
void normalize_bytes_kernel(const uint8_t* bytes, float* out, int64_t n) {
  // Dividing by 0.5 is exact, and so is multiplying by 2 in its place.
  for (int64_t i = 0; i < n; ++i) out[i] = (static_cast<float>(bytes[i]) / 255.0F - 0.5F) * 2.0F;
}

GRADSTEP_CPU_CLONES
double sum_of_squares_kernel(const float* x, int64_t n) {
  constexpr int64_t kLanes = 32;
  float sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane] * x[i + lane];
  }
  for (; i < n; ++i) sums[i % kLanes] += x[i] * x[i];
  double total = 0;
  for (const float sum : sums) total += static_cast<double>(sum);
  return total;
}

}  // namespace gradstep
