// atomic_write: a file that is either the old one or the new one, whatever happens in between.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gradstep/io/file_system.h"

namespace gradstep {

// Writes the pieces one after the other to a temporary file in the same folder, syncs it, renames it to `path` and syncs
// the folder. On an error the temporary file is removed, `path` is untouched, and std::system_error says which call failed.
void atomic_write(FileSystem& file_system, const std::string& path, const std::vector<std::string_view>& pieces);

}  // namespace gradstep
