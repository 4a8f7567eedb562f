// Agreement: between two windows the ranks exchange facts, so that all of them act on the same ones.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>

#include "gradstep/base/error.h"
#include "gradstep/dist/world.h"

namespace gradstep {

struct Facts {
  double seconds = 0;                  // of training
  bool time_is_over = false;           // the limit of JobLength::max_seconds
  std::optional<ExitCode> stop{};      // somebody asked to stop
  std::optional<int64_t> lost_best{};  // update of a best evaluation whose save has failed
  bool failed = false;                 // something that ends the run went wrong
};

// Each rank's own facts -> the same on all: rank 0's clock, limit and lost best; a stop that any rank was
// asked for (its own reason first, else that of the lowest rank); and whether anything failed anywhere. A
// world of one returns at once; else one collective.
[[nodiscard]] Facts agree(Facts own, c10::Device device, World& world);

}  // namespace gradstep
