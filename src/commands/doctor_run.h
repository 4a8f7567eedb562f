// What gradstep doctor says of a run's folder: lock, checkpoints, settings, rows, model files, data.
#pragma once

#include <string>

#include "commands/finding.h"

namespace gradstep {

// Throws CheckpointError unless the folder is there and has files of a run, or at least its lock.
void require_run(const std::string& run);

// Whether a process holds the lock of the folder. False if that cannot be told.
[[nodiscard]] bool is_going_on(const std::string& run);

// One finding a check, in the order of the work. Changes nothing in the folder, and does not disturb a run
// that goes on in it. Loads all checkpoints, one after the other, and the training data.
void examine_run(const std::string& run, const Tell& tell);

}  // namespace gradstep
