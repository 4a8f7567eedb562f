// Sampler: which samples make up window i of epoch e. A pure function of (order, global batch): design
// section 4, line 14 (docs/design.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace gradstep {

// Contiguous part [begin, end) of `size` items for rank `rank` of `world_size`, cut as numpy.array_split
// does.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  [[nodiscard]] int64_t size() const { return end - begin; }
};
[[nodiscard]] Range array_split(int64_t size, int64_t world_size, int64_t rank);

/// The sample numbers of an epoch in their order: int64, contiguous, on the CPU. A pure function of the
/// epoch, which may leave samples out or repeat them, but has the same length in every epoch. Threads:
/// several may call it at once.
using EpochOrder = std::function<at::Tensor(int64_t epoch)>;

/// torch.randperm(num_samples, generator = manual_seed(seed + epoch))
[[nodiscard]] EpochOrder shuffled_order(int64_t num_samples, uint64_t seed);
/// 0, 1, 2, ... in every epoch.
[[nodiscard]] EpochOrder sequential_order(int64_t num_samples);

class Sampler {
 public:
  /// Shuffled anew in every epoch. REQUIRES: num_samples >= 1, global_batch >= 1.
  Sampler(int64_t num_samples, int64_t global_batch, uint64_t seed);
  /// In an order of one's own, of `num_samples` numbers an epoch.
  Sampler(int64_t num_samples, int64_t global_batch, EpochOrder order);
  // ceil(num_samples / global_batch)
  [[nodiscard]] int64_t windows_per_epoch() const;
  [[nodiscard]] int64_t num_samples() const { return num_samples_; }
  [[nodiscard]] int64_t global_batch() const { return global_batch_; }
  /// (num_samples) int64. Throws DataError where an order of one's own has another length or type.
  [[nodiscard]] at::Tensor epoch_order(int64_t epoch) const;
  // The slice of an epoch's order that window `index` covers over all ranks; the last one may be short.
  [[nodiscard]] Range window_range(int64_t index) const;

 private:
  int64_t num_samples_;
  int64_t global_batch_;
  EpochOrder order_;
};

}  // namespace gradstep
