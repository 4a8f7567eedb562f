// The errors that a user, a file or a device can cause, and the exit codes that they lead to.
#pragma once

#include <stdexcept>
#include <string>

namespace gradstep {

/// How a program made with App leaves. Part of the API: the numbers do not change.
enum class ExitCode : int {
  kOk = 0,           ///< done, or ended as asked by a limit of time or of updates
  kUnexpected = 1,   ///< an unexpected error, a fault of the program
  kUsage = 2,        ///< flags, config file, options, or an output folder that cannot be used
  kDiverged = 3,     ///< numbers went wrong, and cannot be mended or a policy asked to stop; see Diverged
  kCheckpoint = 4,   ///< no usable checkpoint or model file, or none can be written
  kData = 5,         ///< the data set is missing or broken
  kOutOfMemory = 6,  ///< the memory is too small: halving the micro-batch did not help, or the run needs more
  kSighup = 129,     ///< stopped by SIGHUP, state saved
  kSigint = 130,     ///< stopped by SIGINT, state saved
  kSigusr1 = 138,    ///< stopped by SIGUSR1, state saved
  kSigusr2 = 140,    ///< stopped by SIGUSR2, state saved
  kSigterm = 143,    ///< stopped by SIGTERM, state saved
};

/// The base class of gradstep's exceptions. what() is one line: what went wrong, where, and what to do. App
/// prints it to stderr and leaves with exit_code().
class Error : public std::runtime_error {
 public:
  /// An error that ends a program with `code`.
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), exit_code_(code) {}
  /// The exit code of a program that this error ends.
  [[nodiscard]] ExitCode exit_code() const { return exit_code_; }

 private:
  ExitCode exit_code_;
};

/// A flag, a config key, an option or an output folder cannot be used.
class ConfigError : public Error {
 public:
  /// An Error with ExitCode::kUsage.
  explicit ConfigError(const std::string& message) : Error(ExitCode::kUsage, message) {}
};

/// A data set is missing, broken or of the wrong kind.
class DataError : public Error {
 public:
  /// An Error with ExitCode::kData.
  explicit DataError(const std::string& message) : Error(ExitCode::kData, message) {}
};

/// A model file or a checkpoint cannot be read or written.
class CheckpointError : public Error {
 public:
  /// An Error with ExitCode::kCheckpoint.
  explicit CheckpointError(const std::string& message) : Error(ExitCode::kCheckpoint, message) {}
};

/// Numbers went wrong: too many updates in a row were not finite, the policy for windows that are not finite
/// or for spikes is to stop, a rollback was one too many or had no checkpoint to go back to, or weights are
/// not finite when they are saved.
class Diverged : public Error {
 public:
  /// An Error with ExitCode::kDiverged.
  explicit Diverged(const std::string& message) : Error(ExitCode::kDiverged, message) {}
};

}  // namespace gradstep
