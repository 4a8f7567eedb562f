// The train command: one run from its settings to its exit code.
#pragma once

#include "app/run_settings.h"
#include "gradstep/base/stop.h"

namespace gradstep {

// Returns the exit code. Prints to stdout and stderr; throws what Error and std::system_error stand for.
int run_train(const RunSettings& settings, StopToken& stop);

}  // namespace gradstep
