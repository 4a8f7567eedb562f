// The seed of a window's random numbers: dropout and the like depend on (seed, window, rank) and on nothing
// before them. And a guard for the generators that they are drawn from.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

namespace gradstep {

// splitmix64's finaliser over seed * 0x9E3779B97F4A7C15 + window * 0xBF58476D1CE4E5B9 + rank *
// 0x94D049BB133111EB (all modulo 2^64); the upper 32 bits, since libtorch's CPU generator uses 32 bits of a
// seed. Part of the format: a change breaks resume.
[[nodiscard]] uint32_t mix32(uint64_t seed, int64_t window, int64_t rank);

// This process's default generators of the CPU and of `device`, which are the user's: afterwards they are as
// they were before.
class GeneratorsGuard {
 public:
  explicit GeneratorsGuard(c10::Device device);
  ~GeneratorsGuard();
  GeneratorsGuard(const GeneratorsGuard&) = delete;
  GeneratorsGuard& operator=(const GeneratorsGuard&) = delete;
  void seed(uint64_t seed);

 private:
  at::Generator host_;  // a handle: copies share the generator
  at::CPUGeneratorImpl* cpu_;
  at::mt19937 engine_;  // copied as a value: get_state() takes ten times as long
  std::optional<float> next_float_;
  std::optional<double> next_double_;
  at::Generator device_;  // undefined on a CPU
  at::Tensor device_state_;
};

}  // namespace gradstep
