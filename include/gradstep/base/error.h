// The errors that a user, a file or a device can cause, and the exit codes that they lead to.
#pragma once

#include <stdexcept>
#include <string>

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

// Base of them all. The program prints what() behind "gradstep: " on stderr and leaves with exit_code().
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), exit_code_(code) {}
  [[nodiscard]] ExitCode exit_code() const { return exit_code_; }

 private:
  ExitCode exit_code_;
};

// A flag, config key, option or output folder that cannot be used.
class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(ExitCode::kUsage, message) {}
};

// A data set that is missing, broken or of the wrong kind.
class DataError : public Error {
 public:
  explicit DataError(const std::string& message) : Error(ExitCode::kData, message) {}
};

// A model or checkpoint file that cannot be read or written.
class CheckpointError : public Error {
 public:
  explicit CheckpointError(const std::string& message) : Error(ExitCode::kCheckpoint, message) {}
};

// Too many updates in a row were not finite.
class Diverged : public Error {
 public:
  explicit Diverged(const std::string& message) : Error(ExitCode::kDiverged, message) {}
};

}  // namespace gradstep
