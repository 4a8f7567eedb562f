// random_permutation: torch.randperm's shuffle on a Mersenne Twister of its own.
#include "data/permutation.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/MT19937RNGEngine.h>

#include <numeric>
#include <utility>

namespace gradstep {
namespace {

// torch draws 32 bits an element up to about 2^32 / 20 elements and 64 bits beyond; the latter is left to
// torch.
constexpr int64_t kMaxOwnSize = 100'000'000;

}  // namespace

at::Tensor random_permutation(int64_t size, uint64_t seed) {
  if (size > kMaxOwnSize) {
    return at::randperm(size, at::detail::createCPUGenerator(seed), at::TensorOptions(at::kLong));
  }
  at::Tensor order = at::empty({size}, at::kLong);
  int64_t* const items = order.mutable_data_ptr<int64_t>();
  std::iota(items, items + size, int64_t{0});
  at::mt19937 engine(seed);
  for (int64_t i = 0; i + 1 < size; ++i) {
    std::swap(items[i], items[i + engine() % (size - i)]);
  }
  return order;
}

}  // namespace gradstep
