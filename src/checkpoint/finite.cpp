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

[[noreturn]] void refuse(const char* what, const std::string& name, const char* problem, int64_t update) {
  throw Diverged(std::string(what) + " " + name + problem + " at update " + std::to_string(update) +
                 ": no checkpoint is made of it; go on from an earlier one with a lower `lr`");
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

bool has_nan(const at::Tensor& tensor) {
  if (!at::isFloatingType(tensor.scalar_type()) && !at::isComplexType(tensor.scalar_type())) return false;
  const at::Tensor wide = at::isFloat8Type(tensor.scalar_type()) ? tensor.to(at::kFloat) : tensor;
  return at::isnan(wide).any().item<bool>();
}

void require_finite(const TrainState& state) {
  const int64_t update = state.engine.counters.updates;
  const auto num_parameters = static_cast<int64_t>(state.model.size()) - state.num_buffers;
  int64_t index = 0;
  for (const auto& [name, tensor] : state.model) {
    const bool is_buffer = index++ >= num_parameters;
    if (all_finite(tensor)) continue;
    if (!is_buffer) refuse("model tensor", name, " is not finite", update);
    // A mask may have infinities on purpose.
    if (has_nan(tensor)) refuse("buffer", name, " holds NaN", update);
  }
  for (const auto& [name, tensor] : state.ema) {
    if (!all_finite(tensor)) refuse("moving average of", name, " is not finite", update);
  }
}

}  // namespace gradstep
