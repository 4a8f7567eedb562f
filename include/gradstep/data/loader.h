// From a data set to the windows of a run: the order of an epoch, the samples of each window, and the threads
// that gather them ahead of time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "gradstep/data/dataset.h"

namespace gradstep {

/// The numbers [begin, end).
struct Range {
  int64_t begin = 0;  ///< the first number
  int64_t end = 0;    ///< one past the last number
  /// How many numbers it has.
  [[nodiscard]] int64_t size() const { return end - begin; }
};
/// The part of `size` items that rank `rank` of `world_size` takes. NumPy: numpy.array_split, so sizes differ
/// by one at most, and the first parts are the larger ones.
[[nodiscard]] Range array_split(int64_t size, int64_t world_size, int64_t rank);

/// Gives the sample numbers of an epoch in their order: int64, contiguous, on the CPU. A pure function of the
/// epoch. It may leave samples out or repeat them, but has the same length in every epoch. Threads: several
/// may call it at once.
using EpochOrder = std::function<at::Tensor(int64_t epoch)>;

/// torch.randperm(num_samples, generator = manual_seed(seed + epoch)), bit for bit. Throws ConfigError for a
/// seed above 2^32 - 1, since LibTorch's generator for the CPU takes 32 bits.
[[nodiscard]] EpochOrder shuffled_order(int64_t num_samples, uint64_t seed);
/// 0, 1, 2, ... in every epoch.
[[nodiscard]] EpochOrder sequential_order(int64_t num_samples);

/// Cuts the order of each epoch into windows of `global_batch` samples. The last window of an epoch has what
/// is left.
class Sampler {
 public:
  /// Shuffled anew in every epoch, by shuffled_order(). REQUIRES: num_samples >= 1, global_batch >= 1.
  Sampler(int64_t num_samples, int64_t global_batch, uint64_t seed);
  /// In an order of your own, of `num_samples` numbers for each epoch.
  Sampler(int64_t num_samples, int64_t global_batch, EpochOrder order);
  /// ceil(num_samples / global_batch)
  [[nodiscard]] int64_t windows_per_epoch() const;
  /// Numbers in the order of an epoch.
  [[nodiscard]] int64_t num_samples() const { return num_samples_; }
  /// Samples of a full window, over all ranks.
  [[nodiscard]] int64_t global_batch() const { return global_batch_; }
  /// The order of an epoch, (num_samples) int64. Throws DataError if an order of your own has another length
  /// or type.
  [[nodiscard]] at::Tensor epoch_order(int64_t epoch) const;
  /// The slice of an epoch's order that window `index` (from 0) has, over all ranks; the last one may be
  /// short.
  [[nodiscard]] Range window_range(int64_t index) const;

 private:
  int64_t num_samples_;
  int64_t global_batch_;
  EpochOrder order_;
};

/// Where a window is in the run. Counts windows that were consumed, never windows that were prefetched.
struct Position {
  int64_t epoch = 0;   ///< from 0
  int64_t index = 0;   ///< of the window in its epoch, from 0
  int64_t number = 0;  ///< of the window in the run, over all epochs, from 0
};

/// All samples of one update on this rank. Empty on some ranks if there are more ranks than samples.
struct Window {
  Batch batch;                 ///< n samples, as the data set stores them
  at::Tensor ids;              ///< (n) int64: their numbers in the data set
  Position position;           ///< where the window is in the run
  int64_t total_samples = 0;   ///< over all ranks
  bool last_of_epoch = false;  ///< the next window begins another epoch
};

/// How a Loader works, and for which rank.
struct LoaderOptions {
  int64_t num_workers = 1;   ///< threads that gather; 0: the thread that calls next() does
  int64_t num_prefetch = 8;  ///< windows kept ready
  int64_t rank = 0;          ///< gathers the part of this rank
  int64_t world_size = 1;    ///< number of ranks
  uint64_t seed = 0;         ///< of the draws that the data set gets
};

/// Gives the windows of a run, one after the other, and gathers them ahead of time. PyTorch:
/// torch.utils.data.DataLoader.
class Loader {
 public:
  /// Begins at `start`: its epoch and index say which window comes first, its number is the number of that
  /// window. Starts the threads.
  Loader(std::shared_ptr<const Dataset> dataset, Sampler sampler, LoaderOptions options, Position start = {});
  /// Stops and joins the threads.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next window. Epochs follow each other without end. Waits until a window is ready. An error in a
  /// thread, such as a DataError, is thrown here, at the window to which it belongs. If a thread runs out of
  /// memory, the caller gathers the window once more, and throws only if that fails too. Threads: one at a
  /// time.
  [[nodiscard]] Window next();
  /// The position of the window that next() returns next, whatever is prefetched.
  [[nodiscard]] Position position() const;
  /// The sampler that it was given.
  [[nodiscard]] const Sampler& sampler() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradstep
