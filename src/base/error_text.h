// What an exception says, in one line.
#pragma once

#include <exception>
#include <string>

namespace gradstep {

// Its message with its lines joined; of LibTorch's errors the first line, without the backtrace.
[[nodiscard]] std::string one_line(const std::exception& error);

}  // namespace gradstep
