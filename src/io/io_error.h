// throw_io_error: a failed call of the operating system as an exception that names what was tried and where.
#pragma once

#include <string>

namespace gradstep {

// std::system_error of the generic category with the text "cannot <what> <path>: <reason>". `error`: an
// errno.
[[noreturn]] void throw_io_error(int error, const std::string& what, const std::string& path);

}  // namespace gradstep
