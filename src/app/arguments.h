// Splits the arguments of a subcommand into flags with their texts and positional arguments. CLI11 is used
// here alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/command_info.h"

namespace gradstep {

struct Arguments {
  std::vector<std::pair<std::string, std::string>>
      flags;                             // (key, text), each key once; the last one given wins
  std::vector<std::string> positionals;  // as many as were given
  std::vector<std::string> rest;         // behind "--", where the subcommand takes them
};

// Takes --flag VALUE, --flag=VALUE, -f VALUE, -fVALUE, and _ for - within a flag. Throws ConfigError, one
// line, for what the subcommand does not know, with the nearest that it does.
[[nodiscard]] Arguments parse_arguments(const CommandInfo& command,
                                        const std::vector<std::string>& arguments);

}  // namespace gradstep
