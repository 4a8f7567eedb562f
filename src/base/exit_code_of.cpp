// Sorts exceptions, those of LibTorch and of the system included.
#include "base/exit_code_of.h"

#include <c10/util/Exception.h>

#include <cerrno>

#include "base/out_of_memory.h"

namespace gradstep {

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

ExitCode exit_code_of(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return error.exit_code();
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
