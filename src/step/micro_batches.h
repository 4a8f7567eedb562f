// How a window is cut into micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "gradstep/data/loader.h"

namespace gradstep {

// Ranges of at most `micro_batch` samples, cut greedily, the last one short. With `join_single_tail` a last
// range of one sample joins the one before it, since batch norm has no variance over one sample. An empty
// window has no ranges.
[[nodiscard]] std::vector<Range> micro_batches(int64_t window, int64_t micro_batch, bool join_single_tail);

}  // namespace gradstep
