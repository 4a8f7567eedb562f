// Asks the kernel about terminals.
// no torch
#include "base/terminal_width.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace gradstep {

// One that cannot move its cursor says so in TERM.
bool is_terminal(std::FILE* stream) {
  const char* const kind = std::getenv("TERM");
  const bool moves = kind != nullptr && *kind != '\0' && std::strcmp(kind, "dumb") != 0;
  return moves && isatty(fileno(stream)) == 1;
}

int terminal_width(std::FILE* stream) {
  winsize size{};
  if (!is_terminal(stream) || ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return std::max<int>(size.ws_col, 40);
}

}  // namespace gradstep
