// What each subcommand takes: the tables from which parsing, --help and docs/cli.md are made.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/ckpt_command.h"
#include "app/eval_command.h"
#include "app/replay_command.h"
#include "app/verify_resume_command.h"
#include "config/flag_table.h"

namespace gradstep {

struct Arguments;

struct CommandInfo {
  std::string name{};        // two words where several go under one name: "ckpt ls"
  std::string summary{};     // one line, for the list of subcommands
  std::string positional{};  // "MODEL", or several: "PATH FILE"; empty: takes none
  std::string positional_help{};
  std::string rest{};  // "TRAIN-FLAGS": words after "--", taken as they are; empty: takes none
  std::vector<FlagInfo> flags{};
  std::vector<std::string> examples{};
  // Returns the exit code. `quiet`: --quiet was given before the name of the command.
  std::function<int(const Arguments& arguments, bool quiet)> run{};
};

// "PATH FILE" -> {"PATH", "FILE"}
[[nodiscard]] std::vector<std::string> positional_names(const CommandInfo& command);

// All of the program's, in the order of the help.
[[nodiscard]] const std::vector<CommandInfo>& commands();
// REQUIRES: one of the names above.
[[nodiscard]] const CommandInfo& command(const std::string& name);

[[nodiscard]] const std::vector<Flag<EvalOptions>>& eval_flags();
[[nodiscard]] const std::vector<Flag<ReplayOptions>>& replay_flags();
[[nodiscard]] const std::vector<Flag<CkptLsOptions>>& ckpt_ls_flags();
[[nodiscard]] const std::vector<Flag<CkptVerifyOptions>>& ckpt_verify_flags();
[[nodiscard]] const std::vector<Flag<CkptExportOptions>>& ckpt_export_flags();
[[nodiscard]] const std::vector<Flag<VerifyResumeOptions>>& verify_resume_flags();

// -c/--config of train, the only flag that is no setting.
[[nodiscard]] const FlagInfo& config_flag();

}  // namespace gradstep
