// The total weight of a window, which its loss is divided by.
#pragma once

#include <c10/core/Device.h>

#include "gradstep/data/loader.h"
#include "gradstep/dist/world.h"
#include "gradstep/model/task.h"

namespace gradstep {

// Over all ranks, which call it together. `number`, from 1, is for messages. Throws ConfigError on all ranks
// if the weight of one is negative or not finite, and on all ranks if Task::weight throws on one.
[[nodiscard]] double window_weight(const Task& task, const Window& window, int64_t number, c10::Device device,
                                   World& world);

}  // namespace gradstep
