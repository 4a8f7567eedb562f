// From a data set to the windows of a run: the order of an epoch, the samples of each window, and the threads
// that gather them ahead of time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "gradstep/data/dataset.h"

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

// Where a window lies in the run. Counts windows consumed, never windows prefetched.
struct Position {
  int64_t epoch = 0;   // from 0
  int64_t index = 0;   // window of the epoch, from 0
  int64_t number = 0;  // running number over epochs, from 0
};

// All samples of one update on this rank. May be empty where there are more ranks than samples.
struct Window {
  Batch batch;
  at::Tensor ids;  // (n) int64: sample numbers in the data set
  Position position;
  int64_t total_samples = 0;  // over all ranks
  bool last_of_epoch = false;
};

struct LoaderOptions {
  int64_t num_workers = 1;   // threads; 0: gather in the caller
  int64_t num_prefetch = 8;  // windows kept ready
  int64_t rank = 0;
  int64_t world_size = 1;
  uint64_t seed = 0;  ///< of the draws that the data set is given
};

class Loader {
 public:
  // Begins at `start`: (epoch, index) say which window comes first, number its running number.
  Loader(std::shared_ptr<const Dataset> dataset, Sampler sampler, LoaderOptions options, Position start = {});
  ~Loader();  // stops and joins the threads
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next window; epochs follow each other without end. Blocks while none is ready. An error in a thread
  // (DataError included) is thrown here, at the window it belongs to; one of memory, for which the
  // computation may have left none, only where a second try in the caller fails too. One thread may call it.
  [[nodiscard]] Window next();
  // Of the window that next() would return: windows handed out, not prefetched.
  [[nodiscard]] Position position() const;
  [[nodiscard]] const Sampler& sampler() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradstep
