// gradstep env: versions, processor features, devices and the precision probe, for bug reports and for the
// curious.
#pragma once

namespace gradstep {

// Returns the exit code. Prints to stdout.
int run_env();

}  // namespace gradstep
