// Sampler: which samples make up window i of epoch e. A pure function of (size, global batch, seed): design
// section 4, line 14 (docs/design.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gradstep {

// Contiguous part [begin, end) of `size` items for rank `rank` of `world_size`, cut as numpy.array_split
// does.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  [[nodiscard]] int64_t size() const { return end - begin; }
};
[[nodiscard]] Range array_split(int64_t size, int64_t world_size, int64_t rank);

class Sampler {
 public:
  // REQUIRES: num_samples >= 1, global_batch >= 1.
  Sampler(int64_t num_samples, int64_t global_batch, uint64_t seed);
  // ceil(num_samples / global_batch)
  [[nodiscard]] int64_t windows_per_epoch() const;
  [[nodiscard]] int64_t num_samples() const { return num_samples_; }
  [[nodiscard]] int64_t global_batch() const { return global_batch_; }
  // (num_samples) int64: torch.randperm(num_samples, generator = manual_seed(seed + epoch)).
  [[nodiscard]] at::Tensor epoch_order(int64_t epoch) const;
  // The slice of an epoch's order that window `index` covers over all ranks; the last one may be short.
  [[nodiscard]] Range window_range(int64_t index) const;

 private:
  int64_t num_samples_;
  int64_t global_batch_;
  uint64_t seed_;
};

}  // namespace gradstep
