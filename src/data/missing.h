// missing_data: the one line that a user sees when a data set is not where it was looked for.
#pragma once

#include <string>

#include "gradstep/base/error.h"

namespace gradstep {

// Names folder, missing file and the cure for this data set.
[[nodiscard]] DataError missing_data(const std::string& name, const std::string& data_dir,
                                     const std::string& file);

}  // namespace gradstep
