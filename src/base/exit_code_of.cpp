// Sorts exceptions, those of LibTorch and of the system included.
#include "base/exit_code_of.h"

#include <cerrno>
#include <system_error>

#include "base/out_of_memory.h"

namespace gradstep {
namespace {

// Not about threads, arguments or pipes.
bool is_about_files(const std::error_code& code) {
  if (code.category() != std::generic_category() && code.category() != std::system_category()) return false;
  switch (code.value()) {
    case EAGAIN:  // no further thread
    case EINVAL:
    case EPIPE:
      return false;
    default:
      return true;
  }
}

// An error of the user's own may carry any code. None leaves with 0, or with a code outside the table.
ExitCode failing_code(ExitCode code) {
  switch (code) {
    case ExitCode::kUsage:
    case ExitCode::kDiverged:
    case ExitCode::kCheckpoint:
    case ExitCode::kData:
    case ExitCode::kOutOfMemory:
    case ExitCode::kSigint:
    case ExitCode::kSighup:
    case ExitCode::kSigusr1:
    case ExitCode::kSigusr2:
    case ExitCode::kSigterm:
      return code;
    case ExitCode::kOk:
    case ExitCode::kUnexpected:
      break;
  }
  return ExitCode::kUnexpected;
}

}  // namespace

ExitCode exit_code_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return failing_code(error.exit_code());
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::not_enough_memory) return ExitCode::kOutOfMemory;
    return is_about_files(error.code()) ? ExitCode::kCheckpoint : ExitCode::kUnexpected;
  } catch (const std::exception& error) {
    return is_out_of_memory(error) ? ExitCode::kOutOfMemory : ExitCode::kUnexpected;
  } catch (...) {
    return ExitCode::kUnexpected;
  }
}

}  // namespace gradstep
