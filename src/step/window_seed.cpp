// One mix, and the two generators that a forward pass may draw from.
#include "step/window_seed.h"

#include <ATen/Context.h>

#include <mutex>

namespace gradstep {

uint32_t mix32(uint64_t seed, int64_t window, int64_t rank) {
  uint64_t z = seed * 0x9E3779B97F4A7C15U + static_cast<uint64_t>(window) * 0xBF58476D1CE4E5B9U +
               static_cast<uint64_t>(rank) * 0x94D049BB133111EBU;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  z ^= z >> 31;
  return static_cast<uint32_t>(z >> 32);
}

GeneratorsGuard::GeneratorsGuard(c10::Device device)
    : host_(at::globalContext().defaultGenerator(at::kCPU)),
      cpu_(at::check_generator<at::CPUGeneratorImpl>(host_)) {
  {
    const std::lock_guard<std::mutex> lock(host_.mutex());
    engine_ = cpu_->engine();
    next_float_ = cpu_->next_float_normal_sample();
    next_double_ = cpu_->next_double_normal_sample();
  }
  if (device.is_cpu()) return;
  device_ = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(device_.mutex());
  device_state_ = device_.get_state();
}

GeneratorsGuard::~GeneratorsGuard() {
  {
    const std::lock_guard<std::mutex> lock(host_.mutex());
    cpu_->set_engine(engine_);
    cpu_->set_next_float_normal_sample(next_float_);
    cpu_->set_next_double_normal_sample(next_double_);
  }
  if (!device_.defined()) return;
  const std::lock_guard<std::mutex> lock(device_.mutex());
  device_.set_state(device_state_);
}

void GeneratorsGuard::seed(uint64_t seed) {
  for (at::Generator* generator : {&host_, &device_}) {
    if (!generator->defined()) continue;
    const std::lock_guard<std::mutex> lock(generator->mutex());
    generator->set_current_seed(seed);
  }
}

}  // namespace gradstep
