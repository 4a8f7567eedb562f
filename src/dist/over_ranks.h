// One number of each rank, brought together: in a world of one without any talk. Waits for the device.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "gradstep/dist/world.h"

namespace gradstep {

[[nodiscard]] double sum_over_ranks(double value, c10::Device device, World& world);
// Nothing if a rank has failed.
[[nodiscard]] std::optional<double> sum_unless_failed(double value, bool failed, c10::Device device,
                                                      World& world);
// Of numbers of at least 0.
[[nodiscard]] int64_t max_over_ranks(int64_t value, c10::Device device, World& world);

}  // namespace gradstep
