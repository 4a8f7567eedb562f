// What an exception means to the user: one line and an exit code.
#pragma once

#include <exception>
#include <string>

namespace gradstep {

struct Failure {
  std::string line;  // without the "gradstep: " before it
  int exit_code = 1;
};

// gradstep::Error says both itself. Out of memory is 6, a file that cannot be written 4, all else 1; never a
// backtrace.
[[nodiscard]] Failure describe_failure(const std::exception_ptr& exception);

// A text for one line of the terminal: control characters become '?', bytes that are not UTF-8 are replaced,
// and what is very long is shortened.
[[nodiscard]] std::string printable(const std::string& raw);

}  // namespace gradstep
