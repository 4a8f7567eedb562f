// One pass on the CPU; dividing by 0.5 is exact, and so is multiplying by 2 in its place.
#include "gradstep/model/normalize.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/cpu_clones.h"

namespace gradstep {
namespace {

GRADSTEP_CPU_CLONES void normalize(const uint8_t* bytes, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = (static_cast<float>(bytes[i]) / 255.0F - 0.5F) * 2.0F;
}

}  // namespace

at::Tensor normalize_bytes(const at::Tensor& inputs) {
  if (inputs.scalar_type() != at::kByte) return inputs;
  if (!inputs.is_cpu() || !inputs.is_contiguous()) return inputs.to(at::kFloat).div_(255).sub_(0.5).div_(0.5);
  at::Tensor out = at::empty(inputs.sizes(), inputs.options().dtype(at::kFloat));
  const uint8_t* bytes = inputs.const_data_ptr<uint8_t>();
  float* floats = out.mutable_data_ptr<float>();
  at::parallel_for(0, inputs.numel(), /*grain_size=*/1 << 15,
                   [&](int64_t begin, int64_t end) { normalize(bytes + begin, floats + begin, end - begin); });
  return out;
}

}  // namespace gradstep
