// The terminal of a stream, if it has one.
#pragma once

#include <cstdio>

namespace gradstep {

// Whether it is one on which a line can be drawn anew.
[[nodiscard]] bool is_terminal(std::FILE* stream);
// Columns, at least 40; 80 for a stream that is no terminal or does not know.
[[nodiscard]] int terminal_width(std::FILE* stream);

}  // namespace gradstep
