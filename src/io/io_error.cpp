// One wording for all failed calls.
// no torch
#include "io/io_error.h"

#include <system_error>

namespace gradstep {

void throw_io_error(int error, const std::string& what, const std::string& path) {
  throw std::system_error(error, std::generic_category(), "cannot " + what + " " + path);
}

}  // namespace gradstep
