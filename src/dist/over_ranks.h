// Numbers and bytes of the ranks, brought together: in a world of one without any talk. Waits for the device.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradstep/dist/world.h"

namespace gradstep {

// Each rank's number, in the order of the ranks.
[[nodiscard]] std::vector<double> gather(double own, c10::Device device, World& world);
[[nodiscard]] double sum_over_ranks(double value, c10::Device device, World& world);
// Nothing if a rank has failed.
[[nodiscard]] std::optional<double> sum_unless_failed(double value, bool failed, c10::Device device,
                                                      World& world);
// Of numbers of at least 0.
[[nodiscard]] int64_t max_over_ranks(int64_t value, c10::Device device, World& world);

// The bytes that rank `root` has; those of the others do not count.
[[nodiscard]] std::string broadcast_bytes(std::string own, int64_t root, c10::Device device, World& world);

}  // namespace gradstep
