// What each subcommand takes: the tables from which parsing, --help and docs/cli.md are made.
#pragma once

#include <string>
#include <vector>

#include "cli/eval_command.h"
#include "cli/fetch_command.h"
#include "cli/replay_command.h"
#include "run/flag_table.h"

namespace gradstep {

struct CommandInfo {
  std::string name{};
  std::string summary{};     // one line, for the list of subcommands
  std::string positional{};  // "MODEL"; empty: takes none
  std::string positional_help{};
  std::vector<FlagInfo> flags{};
  std::vector<std::string> examples{};
};

// train, eval, replay, fetch, env.
[[nodiscard]] const std::vector<CommandInfo>& commands();
// REQUIRES: one of the names above.
[[nodiscard]] const CommandInfo& command(const std::string& name);

[[nodiscard]] const std::vector<Flag<EvalOptions>>& eval_flags();
[[nodiscard]] const std::vector<Flag<FetchOptions>>& fetch_flags();
[[nodiscard]] const std::vector<Flag<ReplayOptions>>& replay_flags();

// -c/--config of train, the only flag that is no setting.
[[nodiscard]] const FlagInfo& config_flag();

}  // namespace gradstep
