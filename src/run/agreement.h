// Agreement: what all ranks act on alike between two windows.
#pragma once

#include <c10/core/Device.h>

#include <optional>

#include "gradstep/base/exit_code.h"
#include "gradstep/dist/world.h"

namespace gradstep {

struct Facts {
  double seconds = 0;              // of training
  bool time_is_over = false;       // --max-time
  std::optional<ExitCode> stop{};  // somebody asked to stop
};

// Each rank's own facts -> the same on all: rank 0's clock and limit, and a stop that any rank was asked for
// (its own reason first, else that of the lowest rank). A world of one returns at once; else one collective.
[[nodiscard]] Facts agree(Facts own, c10::Device device, World& world);

}  // namespace gradstep
