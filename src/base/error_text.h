// What an exception says, in one line.
#pragma once

#include <exception>
#include <string>

namespace gradstep {

// The first line of its message; of LibTorch's errors without the backtrace.
[[nodiscard]] std::string one_line(const std::exception& error);

}  // namespace gradstep
