// One number of each rank, brought together: in a world of one without any talk. Waits for the device.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>

#include "gradstep/dist/world.h"

namespace gradstep {

[[nodiscard]] double sum_over_ranks(double value, c10::Device device, World& world);
// Of numbers of at least 0.
[[nodiscard]] int64_t max_over_ranks(int64_t value, c10::Device device, World& world);

}  // namespace gradstep
