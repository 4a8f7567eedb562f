// What each subcommand takes: the tables from which parsing, --help and docs/cli.md are made.
#pragma once

#include <string>
#include <vector>

#include "app/program.h"
#include "commands/ckpt_command.h"
#include "commands/doctor_command.h"
#include "commands/eval_command.h"
#include "commands/replay_command.h"
#include "commands/verify_resume_command.h"
#include "config/flag_table.h"

namespace gradstep {

// "PATH FILE" -> {"PATH", "FILE"}; "[RUN]", which may be left out -> {"RUN"}
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
[[nodiscard]] const std::vector<Flag<DoctorOptions>>& doctor_flags();

}  // namespace gradstep
