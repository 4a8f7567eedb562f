// The program: picks the subcommand, reads its settings, runs it, and turns whatever goes wrong into a line
// and a code.
#pragma once

namespace gradstep {

// Returns the exit code; lets no exception out. Changes signal handlers; one call at a time.
int run_app(int argc, char** argv);

}  // namespace gradstep
