// What a window needs before its passes: the total weight that its loss is divided by, its samples over all
// ranks, and the learning rate.
#pragma once

#include <c10/core/Device.h>

#include "gradstep/data/loader.h"
#include "gradstep/dist/world.h"
#include "gradstep/model/task.h"
#include "gradstep/step/lr_schedule.h"

namespace gradstep {

// Over all ranks, which call it together. `number`, from 1, is for messages. Throws ConfigError on all ranks
// if the weight of one is negative or not finite, and on all ranks if Task::weight throws on one.
[[nodiscard]] double window_weight(const Task& task, const Window& window, int64_t number, c10::Device device,
                                   World& world);

// Of update `update`, from 1. Throws on all ranks what a schedule of one's own throws on one; other schedules
// talk to nobody.
[[nodiscard]] double window_lr(const LrSchedule& schedule, int64_t update, c10::Device device, World& world);

// A window made by hand. All ranks call it together.
[[nodiscard]] Window window_of(const Batch& batch, int64_t epoch, c10::Device device, World& world);

}  // namespace gradstep
