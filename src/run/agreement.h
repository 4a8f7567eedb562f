// Agreement: between two windows the ranks exchange facts, so that all of them act on the same ones.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <exception>
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

// Throws on every rank if one has an exception: its own, or an Error with the same exit code that names the
// rank. `own` may be null. A world of one only rethrows; else one collective.
void throw_together(const std::exception_ptr& own, c10::Device device, World& world);

// Runs `action`, and throws on every rank if it throws on one. REQUIRES: `action` talks to no other rank.
template <class Action>
void together(Action action, c10::Device device, World& world) {
  std::exception_ptr failure;
  try {
    action();
  } catch (...) {
    failure = std::current_exception();
  }
  throw_together(failure, device, world);
}

}  // namespace gradstep
