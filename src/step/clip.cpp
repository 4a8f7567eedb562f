// On the CPU the norm is our own kernel: fixed blocks, summed in fp32 lanes and then in fp64 in block order.
#include "step/clip.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>

#include "base/vector_kernels.h"

namespace gradstep {
namespace {

constexpr int64_t kBlock = 4096;  // floats: fits the first cache, and fixes the order of additions

double sum_of_squares(const at::Tensor& grad) {
  // Any dense layout will do: the sum runs over memory, and a permuted dense tensor has the same elements.
  const at::Tensor dense = grad.is_non_overlapping_and_dense() ? grad : grad.contiguous();
  const float* data = dense.const_data_ptr<float>();
  const int64_t n = dense.numel();
  const int64_t num_blocks = (n + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<size_t>(num_blocks));
  at::parallel_for(0, num_blocks, /*grain_size=*/8, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kBlock;
      sums[static_cast<size_t>(block)] = sum_of_squares_kernel(data + first, std::min(kBlock, n - first));
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void global_norm_cpu(const std::vector<at::Tensor>& grads, at::Tensor& norm, at::Tensor& found_inf) {
  double total = 0;
  for (const at::Tensor& grad : grads) total += sum_of_squares(grad);
  const float value = static_cast<float>(std::sqrt(total));
  *norm.mutable_data_ptr<float>() = value;
  if (!std::isfinite(value)) *found_inf.mutable_data_ptr<float>() = 1.0F;
}

bool is_cpu_fp32(const at::Tensor& grad) { return grad.is_cpu() && grad.scalar_type() == at::kFloat; }

}  // namespace

void global_norm(const std::vector<at::Tensor>& grads, at::Tensor& norm, at::Tensor& found_inf) {
  if (std::all_of(grads.begin(), grads.end(), is_cpu_fp32) && norm.is_cpu()) {
    global_norm_cpu(grads, norm, found_inf);
    return;
  }
  if (grads.empty()) {
    norm.zero_();
    return;
  }
  norm.copy_(at::stack(at::_foreach_norm(grads, 2)).norm(2));
  found_inf.copy_(at::maximum(found_inf, norm.isfinite().logical_not().to(at::kFloat)));
}

void clip_by_norm_(std::vector<at::Tensor>& grads, const at::Tensor& norm, double max_norm) {
  if (max_norm <= 0 || grads.empty()) return;
  if (!norm.is_cpu()) {
    at::_foreach_mul_(grads, at::clamp_max(max_norm / (norm + 1e-6), 1.0));
    return;
  }
  // The same fp32 operations on the host, which sees the number for free: x * 1 is x, so the pass over the
  // gradients is saved.
  const float reciprocal = 1.0F / (norm.item<float>() + 1e-6F);
  const float coefficient = reciprocal * static_cast<float>(max_norm);
  if (!(coefficient >= 1.0F)) at::_foreach_mul_(grads, coefficient);
}

}  // namespace gradstep
