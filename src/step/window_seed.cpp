// One mix, and the two generators that a forward pass may draw from.
#include "step/window_seed.h"

#include <ATen/ATen.h>

namespace gradstep {

uint32_t mix32(uint64_t seed, int64_t window, int64_t rank) {
  uint64_t z = seed * 0x9E3779B97F4A7C15U + static_cast<uint64_t>(window) * 0xBF58476D1CE4E5B9U +
               static_cast<uint64_t>(rank) * 0x94D049BB133111EBU;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  z ^= z >> 31;
  return static_cast<uint32_t>(z >> 32);
}

void seed_generators(uint64_t seed, c10::Device device) {
  const auto set = [seed](at::Generator generator) {  // a handle: copies share the generator
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(seed);
  };
  set(at::globalContext().defaultGenerator(at::kCPU));
  if (!device.is_cpu()) set(at::globalContext().defaultGenerator(device));
}

}  // namespace gradstep
