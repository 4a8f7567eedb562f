// The seed of a random run of damage.
#pragma once

#include <cstdlib>
#include <random>
#include <string>

namespace gradstep::testing {

// Another one each time, so that many runs look at many files; GRADSTEP_FUZZ_SEED repeats one that failed.
// Put it into a SCOPED_TRACE.
inline unsigned fuzz_seed() {
  const char* const asked = std::getenv("GRADSTEP_FUZZ_SEED");
  return asked == nullptr ? std::random_device{}() : static_cast<unsigned>(std::stoul(asked));
}

inline std::string fuzz_trace(unsigned seed) { return "GRADSTEP_FUZZ_SEED=" + std::to_string(seed); }

}  // namespace gradstep::testing
