// random_permutation: the shuffle of the sampler and the validation split.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gradstep {

// (size) int64, bit-equal to torch.randperm(size, generator=torch.Generator().manual_seed(seed)). Uses one
// thread only, so that a loader thread can call it without opening a team of compute threads.
[[nodiscard]] at::Tensor random_permutation(int64_t size, uint64_t seed);

}  // namespace gradstep
