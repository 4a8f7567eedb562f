// together: what fails on one rank ends all of them, with the same exit code.
#pragma once

#include <c10/core/Device.h>

#include <exception>

#include "gradstep/dist/world.h"

namespace gradstep {

// Throws on every rank if one has an exception: its own, or an Error with the same exit code that names the
// rank. `own` may be null. A world of one only rethrows; else one collective.
void throw_together(const std::exception_ptr& own, c10::Device device, World& world);

// Runs `action`, and throws on every rank if it throws on one. REQUIRES: `action` makes the same calls to the
// world on every rank, also where it throws.
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
