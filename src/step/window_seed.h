// The seed of a window's random numbers: dropout and the like depend on (seed, window, rank) and on nothing
// before them.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace gradstep {

// splitmix64's finaliser over seed * 0x9E3779B97F4A7C15 + window * 0xBF58476D1CE4E5B9 + rank *
// 0x94D049BB133111EB (all modulo 2^64); the upper 32 bits, since libtorch's CPU generator uses 32 bits of a
// seed. Part of the format: a change breaks resume.
[[nodiscard]] uint32_t mix32(uint64_t seed, int64_t window, int64_t rank);

// Seeds this process's generators of the CPU and of `device`.
void seed_generators(uint64_t seed, c10::Device device);

}  // namespace gradstep
