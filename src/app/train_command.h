// gradstep train: one training run from its resolved settings to its last line.
#pragma once

#include "gradstep/base/stop.h"
#include "config/run_config.h"

namespace gradstep {

// Returns the exit code. Prints the plan and the rows to stdout; throws what Error and std::system_error
// stand for. REQUIRES: validate(config) did not throw.
int run_train(const RunConfig& config, StopToken& stop);

}  // namespace gradstep
