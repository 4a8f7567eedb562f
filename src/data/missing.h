// missing_data: the one line that a user sees when a data set is not where it was looked for.
#pragma once

#include <filesystem>
#include <string>

#include "gradstep/base/error.h"

namespace gradstep {

// Whether a plain file is at the path. Throws DataError, with the cause, if that cannot be told.
[[nodiscard]] bool is_data_file(const std::string& name, const std::filesystem::path& path);

// Names folder, missing file, what is there in its place, and the cure for this data set.
[[nodiscard]] DataError missing_data(const std::string& name, const std::string& data_dir,
                                     const std::string& file);

}  // namespace gradstep
