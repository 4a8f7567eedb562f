// Loader: windows in the sampler's order, gathered ahead of time by threads that never change that order.
#pragma once

#include <cstdint>
#include <memory>

#include "gradstep/data/batch.h"
#include "gradstep/data/dataset.h"
#include "gradstep/data/sampler.h"

namespace gradstep {

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
