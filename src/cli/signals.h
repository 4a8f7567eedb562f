// Turns SIGINT, SIGTERM and SIGUSR1 into requests to stop between two updates.
#pragma once

#include "gradstep/base/stop.h"

namespace gradstep {

// From here on the three signals call stop.request(); a second SIGINT leaves the process at once with 130.
// REQUIRES: `stop` lives until restore_stop_signals(); one token at a time in a process.
void install_stop_signals(StopToken& stop);
// Gives the three signals back what they did before.
void restore_stop_signals();

// A reader that goes away is an error of write() then, not the end of the process.
void ignore_broken_pipes();

}  // namespace gradstep
