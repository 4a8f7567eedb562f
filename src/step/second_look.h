// What several ranks saw in a bad window, brought together.
#pragma once

#include <c10/core/Device.h>

#include "gradstep/dist/world.h"
#include "gradstep/step/engine.h"

namespace gradstep {

// Of the rank that has most to tell, on all ranks: the lowest one that found a value which is not finite,
// else one whose look failed, else the one with the largest gradients. All ranks call it together.
[[nodiscard]] Examination share_examination(Examination own, bool failed, c10::Device device, World& world);

}  // namespace gradstep
