// Sampler: the order of an epoch and its cut into windows and ranks.
#include "gradstep/data/sampler.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "data/permutation.h"

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

Sampler::Sampler(int64_t num_samples, int64_t global_batch, uint64_t seed)
    : num_samples_(num_samples), global_batch_(global_batch), seed_(seed) {
  TORCH_CHECK(num_samples >= 1, "Sampler: num_samples is ", num_samples);
  TORCH_CHECK(global_batch >= 1, "Sampler: global_batch is ", global_batch);
}

int64_t Sampler::windows_per_epoch() const {
  return num_samples_ / global_batch_ + (num_samples_ % global_batch_ == 0 ? 0 : 1);
}

at::Tensor Sampler::epoch_order(int64_t epoch) const {
  return random_permutation(num_samples_, seed_ + static_cast<uint64_t>(epoch));
}

Range Sampler::window_range(int64_t index) const {
  TORCH_CHECK(index >= 0 && index < windows_per_epoch(), "Sampler: window ", index, " of ",
              windows_per_epoch());
  const int64_t begin = index * global_batch_;
  return {begin, begin + std::min(global_batch_, num_samples_ - begin)};
}

}  // namespace gradstep
