// gradstep doctor: checks this machine and the folder of a run, one line each with what to do.
#pragma once

#include <string>

namespace gradstep {

struct DoctorOptions {
  std::string run{};   // the output folder of a run, as ckpt takes it; empty: the machine alone
  bool json = false;   // one JSON object instead of lines
  bool quiet = false;  // only the last line
};

// Returns the exit code: 0 if all is well, 1 for warnings alone, else that of the first problem. Prints to
// stdout. Throws CheckpointError if `run` is no folder of a run. Changes nothing in it.
int run_doctor(const DoctorOptions& options);

}  // namespace gradstep
