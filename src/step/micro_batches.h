// How a window is cut into micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "gradstep/data/loader.h"
#include "gradstep/model/task.h"

namespace gradstep {

// Whether the module has a layer of batch norm; torch::batch_norm() within a forward is not seen.
[[nodiscard]] bool has_batch_norm(const torch::nn::Module& module);

// Ranges of at most `micro_batch` samples, cut greedily, the last one short. With `join_single_tail` a last
// range of one sample joins the one before it, since batch norm has no variance over one sample. An empty
// window has no ranges.
[[nodiscard]] std::vector<Range> micro_batches(int64_t window, int64_t micro_batch, bool join_single_tail);

// Samples of a micro-batch of a window of `window` samples, if `micro_batch` is what is asked for: a window
// that its task does not allow to be cut goes through at once.
[[nodiscard]] int64_t micro_batch_of(const Task& task, int64_t micro_batch, int64_t window);

}  // namespace gradstep
