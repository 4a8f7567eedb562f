// no torch
#include "base/seed.h"

#include <string>

#include "gradstep/base/error.h"

namespace gradstep {

void check_seed(uint64_t seed) {
  if (seed <= kMaxSeed) return;
  throw ConfigError("`seed` " + std::to_string(seed) + ": must be at most " + std::to_string(kMaxSeed) +
                    ", since LibTorch's generator for the CPU takes 32 bits of it");
}

}  // namespace gradstep
