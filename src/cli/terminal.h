// The terminal behind a stream, if there is one.
#pragma once

#include <cstdio>

namespace gradstep {

[[nodiscard]] bool is_terminal(std::FILE* stream);
// Columns, at least 40; 80 where the stream is no terminal or does not know.
[[nodiscard]] int terminal_width(std::FILE* stream);
// Opens /dev/null for each of stdin, stdout and stderr that the parent has closed, so that no file of ours
// gets its number.
void open_missing_streams();

}  // namespace gradstep
