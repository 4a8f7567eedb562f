// atomic_write: a file that is either the old one or the new one, whatever happens in between.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gradstep/io/file_system.h"

namespace gradstep {

// Where `path` is a link, the file that it leads to is meant. A device or a pipe is written to in place, and
// a pipe that nobody reads within ten seconds is an error. All others:
//
// Writes the pieces one after the other to a temporary file in the same folder, syncs it, renames it to
// `path` and syncs the folder. On an error std::system_error says which call failed, the temporary file is
// removed, and `path` is untouched, except where syncing the folder failed, the last call of all: then it is
// the new file, whole, but may be the old one after a power cut.
void atomic_write(FileSystem& file_system, const std::string& path,
                  const std::vector<std::string_view>& pieces);

// Copies a regular file likewise. What cannot be read is a std::system_error, too.
void atomic_copy(FileSystem& file_system, const std::string& from, const std::string& to);

}  // namespace gradstep
