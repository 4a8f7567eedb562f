// Sampler: the order of an epoch and its cut into windows and ranks.
#include <ATen/ATen.h>

#include <algorithm>

#include "base/seed.h"
#include "data/permutation.h"
#include "gradstep/base/error.h"
#include "gradstep/data/loader.h"

namespace gradstep {

Range array_split(int64_t size, int64_t world_size, int64_t rank) {
  TORCH_CHECK(size >= 0 && world_size >= 1 && rank >= 0 && rank < world_size, "array_split: size ", size,
              ", rank ", rank, " of ", world_size);
  // The first size % world_size ranks get one item more.
  const int64_t each = size / world_size;
  const int64_t extra = size % world_size;
  const int64_t begin = rank * each + std::min(rank, extra);
  return {begin, begin + each + (rank < extra ? 1 : 0)};
}

EpochOrder shuffled_order(int64_t num_samples, uint64_t seed) {
  check_seed(seed);
  return [=](int64_t epoch) { return random_permutation(num_samples, seed + static_cast<uint64_t>(epoch)); };
}

EpochOrder sequential_order(int64_t num_samples) {
  return [=](int64_t /*epoch*/) { return at::arange(num_samples, at::kLong); };
}

Sampler::Sampler(int64_t num_samples, int64_t global_batch, uint64_t seed)
    : Sampler(num_samples, global_batch, shuffled_order(num_samples, seed)) {}

Sampler::Sampler(int64_t num_samples, int64_t global_batch, EpochOrder order)
    : num_samples_(num_samples), global_batch_(global_batch), order_(std::move(order)) {
  // Their numbers must fit into memory, eight bytes each.
  constexpr int64_t kMostSamples = int64_t{1} << 48;
  if (num_samples < 1 || num_samples > kMostSamples)
    throw DataError("sampler: an epoch of " + std::to_string(num_samples) +
                    " samples; it must have 1 to 2^48");
  if (global_batch < 1)
    throw ConfigError("sampler: " + std::to_string(global_batch) + " samples an update; give 1 or more");
}

int64_t Sampler::windows_per_epoch() const {
  return num_samples_ / global_batch_ + (num_samples_ % global_batch_ == 0 ? 0 : 1);
}

at::Tensor Sampler::epoch_order(int64_t epoch) const {
  at::Tensor order = order_(epoch);
  if (order.dim() == 1 && order.numel() == num_samples_ && order.scalar_type() == at::kLong &&
      order.is_contiguous() && order.is_cpu()) {
    return order;
  }
  throw DataError("the order of epoch " + std::to_string(epoch + 1) + ": expected " +
                  std::to_string(num_samples_) + " contiguous int64 numbers on the CPU, found " +
                  std::to_string(order.numel()) + " of " + c10::toString(order.scalar_type()) +
                  "; correct the order that the sampler was given");
}

Range Sampler::window_range(int64_t index) const {
  TORCH_CHECK(index >= 0 && index < windows_per_epoch(), "Sampler: window ", index, " of ",
              windows_per_epoch());
  const int64_t begin = index * global_batch_;
  return {begin, begin + std::min(global_batch_, num_samples_ - begin)};
}

}  // namespace gradstep
