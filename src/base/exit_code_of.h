// Which exit code an exception means.
#pragma once

#include <exception>

#include "gradstep/base/error.h"

namespace gradstep {

// Of an Error its own; of memory that ran out kOutOfMemory; of a file or disk kCheckpoint; else kUnexpected.
[[nodiscard]] ExitCode exit_code_of(const std::exception_ptr& exception);

}  // namespace gradstep
