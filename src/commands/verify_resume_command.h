// gradstep verify-resume: proof that a run which stopped and went on equals one that never stopped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradstep/base/stop.h"

namespace gradstep {

struct VerifyResumeOptions {
  int64_t updates = 20;                    // before the stop
  int64_t more = 20;                       // after it
  bool kill = false;                       // SIGKILL once the last checkpoint is there, no clean stop
  std::string output_dir{};                // empty: a temporary folder
  bool quiet = false;                      // the last line only
  std::vector<std::string> train_flags{};  // as given to `gradstep train`
};

// Trains unbroken into <folder>/unbroken, and with a stop between into <folder>/resumed, as processes of
// their own; compares the newest checkpoints and all rows. Returns 0 when all is equal bit for bit, 1 when
// not, the exit code of the signal when `stop` was requested. Prints to stdout. A temporary folder goes
// unless something differs or fails. Throws ConfigError for flags that this command sets itself, for a folder
// that is not empty, and for a run that ends before the stop; Error with the line and code of a run that
// failed.
int run_verify_resume(const VerifyResumeOptions& options, const StopToken& stop);

}  // namespace gradstep
