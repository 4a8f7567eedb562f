// One pass on the CPU, three operations elsewhere.
#include "model/normalize.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/vector_kernels.h"

namespace gradstep {

at::Tensor normalize_bytes(const at::Tensor& inputs) {
  if (inputs.scalar_type() != at::kByte) return inputs;
  if (!inputs.is_cpu() || !inputs.is_contiguous()) return inputs.to(at::kFloat).div_(255).sub_(0.5).div_(0.5);
  at::Tensor out = at::empty(inputs.sizes(), inputs.options().dtype(at::kFloat));
  const uint8_t* bytes = inputs.const_data_ptr<uint8_t>();
  float* floats = out.mutable_data_ptr<float>();
  at::parallel_for(0, inputs.numel(), /*grain_size=*/1 << 15, [&](int64_t begin, int64_t end) {
    normalize_bytes_kernel(bytes + begin, floats + begin, end - begin);
  });
  return out;
}

}  // namespace gradstep
