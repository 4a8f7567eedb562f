// A value that is not finite has all bits of its exponent set; the loops below look for these bits.
#include "checkpoint/finite.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>

#include "base/vector_kernels.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

// Bits is the unsigned integer of the type's size, mask its exponent.
template <class Bits>
bool no_full_exponent(const at::Tensor& tensor, Bits mask) {
  const char* bytes = static_cast<const char*>(tensor.const_data_ptr());
  bool found = false;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    Bits bits{};
    std::memcpy(&bits, bytes + static_cast<size_t>(i) * sizeof bits, sizeof bits);
    found |= (bits & mask) == mask;
  }
  return !found;
}

void check(const char* what, const NamedTensors& tensors, int64_t update) {
  for (const auto& [name, tensor] : tensors) {
    if (all_finite(tensor)) continue;
    throw Diverged(std::string(what) + " " + name + " is not finite at update " + std::to_string(update) +
                   ": no checkpoint is made of it; go on from an earlier one with a lower `lr`");
  }
}

}  // namespace

bool all_finite(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  if (!at::isFloatingType(type) && !at::isComplexType(type)) return true;
  if (tensor.is_cpu() && tensor.is_contiguous()) {
    if (type == at::kFloat) {
      // One pass at the speed of memory; large values may overflow the sum and are looked at again.
      return std::isfinite(sum_of_squares_kernel(tensor.const_data_ptr<float>(), tensor.numel())) ||
             no_full_exponent<uint32_t>(tensor, 0x7f800000U);
    }
    if (type == at::kDouble) return no_full_exponent<uint64_t>(tensor, 0x7ff0000000000000U);
    if (type == at::kBFloat16) return no_full_exponent<uint16_t>(tensor, 0x7f80U);
    if (type == at::kHalf) return no_full_exponent<uint16_t>(tensor, 0x7c00U);
    if (type == at::kFloat8_e5m2) return no_full_exponent<uint8_t>(tensor, 0x7cU);
    if (type == at::kFloat8_e4m3fn) return no_full_exponent<uint8_t>(tensor, 0x7fU);  // NaN, its only one
  }
  if (at::isFloat8Type(type)) return at::isfinite(tensor.to(at::kFloat)).all().item<bool>();
  return at::isfinite(tensor).all().item<bool>();
}

void require_finite(const TrainState& state) {
  check("model tensor", state.model, state.engine.counters.updates);
  check("moving average of", state.ema, state.engine.counters.updates);
}

}  // namespace gradstep
