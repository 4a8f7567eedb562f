// Greedy cuts.
#include "step/micro_batches.h"

#include <torch/torch.h>

#include <algorithm>

namespace gradstep {

bool has_batch_norm(const torch::nn::Module& module) {
  return std::ranges::any_of(module.modules(), [](const auto& child) {
    return child->template as<torch::nn::BatchNorm1dImpl>() ||
           child->template as<torch::nn::BatchNorm2dImpl>() ||
           child->template as<torch::nn::BatchNorm3dImpl>();
  });
}

std::vector<Range> micro_batches(int64_t window, int64_t micro_batch, bool join_single_tail) {
  std::vector<Range> ranges;
  for (int64_t begin = 0; begin < window; begin += micro_batch) {
    ranges.push_back({begin, std::min(begin + micro_batch, window)});
  }
  if (join_single_tail && ranges.size() > 1 && ranges.back().size() == 1) {
    ranges.pop_back();
    ranges.back().end = window;
  }
  return ranges;
}

int64_t micro_batch_of(const Task& task, int64_t micro_batch, int64_t window) {
  return task.divisible ? micro_batch : std::max<int64_t>(window, 1);
}

}  // namespace gradstep
