// Help texts for the terminal and docs/cli.md, both made from the tables of the subcommands.
#pragma once

#include <string>

#include "commands/command_info.h"

namespace gradstep {

// What `gradstep` alone and `gradstep --help` say. `width`: columns to wrap at.
[[nodiscard]] std::string program_help(int width);
// What `gradstep ckpt --help` says: the commands whose names begin with that word.
[[nodiscard]] std::string group_help(const std::string& group, int width);
// What `gradstep <command> --help` says.
[[nodiscard]] std::string command_help(const CommandInfo& command, int width);
// The whole of docs/cli.md.
[[nodiscard]] std::string markdown_help();

}  // namespace gradstep
