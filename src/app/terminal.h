// The terminal behind a stream, if there is one.
#pragma once

#include <cstdio>
#include <string>

namespace gradstep {

[[nodiscard]] bool is_terminal(std::FILE* stream);
// Columns, at least 40; 80 where the stream is no terminal or does not know.
[[nodiscard]] int terminal_width(std::FILE* stream);
// "<program>: warning: <text>" on stderr.
void write_warning(const std::string& text);
// For output that is all there is to see of a command: throws std::system_error when it reaches nobody,
// unless its reader has seen enough and left.
void write_stdout(const std::string& text);
// The same for what printf has put into the buffer.
void flush_stdout();
// Opens /dev/null for each of stdin, stdout and stderr that the parent has closed, so that no file of ours
// gets its number.
void open_missing_streams();

}  // namespace gradstep
