// Seeds: what the generators of LibTorch take of them.
// no torch
#pragma once

#include <cstdint>

namespace gradstep {

// Its generator for the CPU takes 32 bits, so that a larger seed would repeat the run of a smaller one.
constexpr uint64_t kMaxSeed = (uint64_t{1} << 32) - 1;

// Throws ConfigError for a larger one.
void check_seed(uint64_t seed);

}  // namespace gradstep
