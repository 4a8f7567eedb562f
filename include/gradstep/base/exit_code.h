// The exit codes of the program: part of its contract with shells, schedulers and supervisors.
#pragma once

namespace gradstep {

enum class ExitCode : int {
  kOk = 0,           // done; also when a time limit ended the run
  kUnexpected = 1,   // a fault of ours
  kUsage = 2,        // flags, config file, locked or foreign folder, fp16 parameters
  kDiverged = 3,     // too many updates in a row were not finite
  kCheckpoint = 4,   // no usable checkpoint or model file, or none can be written
  kData = 5,         // the data set is missing or broken
  kOutOfMemory = 6,  // out of memory with a micro-batch of one sample
  kSigint = 130,     // stopped by SIGINT, state saved
  kSigusr1 = 138,    // stopped by SIGUSR1, state saved
  kSigterm = 143,    // stopped by SIGTERM, state saved
};

}  // namespace gradstep
