// Turns SIGINT, SIGTERM and SIGUSR1 into requests to stop between two updates.
#pragma once

#include "gradstep/base/stop.h"

namespace gradstep {

// From here on the three signals call stop.request(); a second SIGINT leaves the process at once with 130.
// REQUIRES: `stop` lives until detach_stop_signals(); one token at a time in a process.
void install_stop_signals(StopToken& stop);
// For a process on its way out, whose exit code is settled: SIGTERM and SIGUSR1 do nothing any more, and a
// SIGINT that is not the first still leaves at once. `stop` may die.
void detach_stop_signals();

// A reader that goes away, and a file that reaches the limit of ulimit -f, are errors of write() then, not
// the end of the process.
void ignore_write_signals();

}  // namespace gradstep
