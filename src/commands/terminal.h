// Standard streams: warnings, and output that must arrive.
#pragma once

#include <cstdio>
#include <string>

#include "base/terminal_width.h"

namespace gradstep {

// "<program>: warning: <text>" on stderr, with options spelt as flags.
void write_warning(const std::string& text);
// "<program>: <text>" on stderr, likewise.
void write_error(const std::string& text);
// For output that is the whole result of a command: throws std::system_error if it cannot be written, unless
// the reader has closed the pipe.
void write_stdout(const std::string& text);
// The same for what printf has put into the buffer.
void flush_stdout();
// Opens /dev/null for each of stdin, stdout and stderr that the parent has closed, so that no file of ours
// gets its number.
void open_missing_streams();

}  // namespace gradstep
