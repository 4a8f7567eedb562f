// Which exit code an exception means.
#pragma once

#include <exception>
#include <system_error>

#include "gradstep/base/error.h"

namespace gradstep {

// Of an Error its own; of memory that ran out kOutOfMemory; of a file or disk kCheckpoint; else kUnexpected.
[[nodiscard]] ExitCode exit_code_of(const std::exception_ptr& exception);

// Whether an error of the system is about files, and not about threads, arguments or pipes.
[[nodiscard]] bool is_about_files(const std::error_code& code);

}  // namespace gradstep
