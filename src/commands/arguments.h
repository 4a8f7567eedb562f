// Splits the arguments of a subcommand into flags with their texts and positional arguments. CLI11 is used
// here alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "commands/command_info.h"
#include "config/flag_table.h"
#include "gradstep/base/error.h"

namespace gradstep {

struct Arguments {
  std::vector<std::pair<std::string, std::string>>
      flags;                             // (key, text), each key once; the last one given wins
  std::vector<std::string> positionals;  // as many as were given
  std::vector<std::string> rest;         // after "--", if the subcommand takes them
};

// Takes --flag VALUE, --flag=VALUE, -f VALUE, -fVALUE, and _ for - within a flag. Throws ConfigError, one
// line, for what the subcommand does not know, with the nearest that it does.
[[nodiscard]] Arguments parse_arguments(const CommandInfo& command,
                                        const std::vector<std::string>& arguments);

// The positional arguments of the command, all of them. Throws ConfigError naming the first that is missing.
[[nodiscard]] const std::vector<std::string>& required(const CommandInfo& info, const Arguments& arguments);

// The options struct of a command, from its own flags among the arguments.
template <class Options>
[[nodiscard]] Options options_from(const Arguments& arguments, const std::vector<Flag<Options>>& flags) {
  Options options;
  for (const auto& [key, text] : arguments.flags) {
    for (const Flag<Options>& flag : flags) {
      if (flag.info.key == key && !flag.set(options, text)) {
        throw ConfigError(complaint(flag_spelling(key), text, flag.info));
      }
    }
  }
  return options;
}

}  // namespace gradstep
