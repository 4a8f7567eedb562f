// The settings of a training run from all places: flags > environment > config file > default.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/arguments.h"
#include "app/run_settings.h"

namespace gradstep {

// Variables of the environment, with their names as they stand.
using Environment = std::vector<std::pair<std::string, std::string>>;

// Those of this process that begin with GRADSTEP_.
[[nodiscard]] Environment gradstep_environment();

// Sets all that was given, and validates it. Returns warnings, one line each: unknown GRADSTEP_ variables.
// Throws ConfigError, one line that names the flag, variable or file and line, the value and the cure.
[[nodiscard]] std::vector<std::string> resolve_train_settings(const Arguments& arguments,
                                                              const Environment& environment,
                                                              RunSettings& settings);

}  // namespace gradstep
