// From the arguments of each command to its options, and on to what it does.
// no torch
#include "commands/run_command.h"

#include <algorithm>

#include "app/program.h"
#include "app/train_config.h"
#include "commands/arguments.h"
#include "commands/command_info.h"
#include "commands/env_command.h"
#include "commands/terminal.h"
#include "commands/train_command.h"
#include "gradstep/base/error.h"
#include "gradstep/base/stop.h"

namespace gradstep {
namespace {

using Words = std::vector<std::string>;

// The handlers stay to the end of the process, so that a signal which comes while it winds up changes nothing
// any more.
StopToken& stop_of_process() {
  static auto* const signals = new StopSignals;
  return signals->token();
}

// Those of the arguments that are settings of the data, the choice of the data set first.
std::vector<std::pair<std::string, std::string>> data_settings(const Arguments& arguments) {
  std::vector<std::pair<std::string, std::string>> found;
  const std::vector<FlagInfo> flags = RunSettings(program().catalog).data_flags();
  for (const auto& [key, text] : arguments.flags) {
    if (std::ranges::find(flags, key, &FlagInfo::key) != flags.end()) found.emplace_back(key, text);
  }
  std::ranges::stable_partition(found, is_choice, &std::pair<std::string, std::string>::first);
  return found;
}

}  // namespace

int command_train(const Arguments& arguments, bool quiet) {
  RunSettings settings(program().catalog);
  for (const std::string& warning : resolve_train_settings(arguments.flags, gradstep_environment(), settings))
    write_warning(warning);
  settings.config.quiet = settings.config.quiet || quiet;
  return run_train(settings, stop_of_process());
}

int command_eval(const Arguments& arguments, bool quiet) {
  EvalOptions options = options_from(arguments, eval_flags());
  options.model_path = required(command("eval"), arguments).front();
  options.data = data_settings(arguments);
  options.quiet = options.quiet || quiet;
  return run_eval(options, stop_of_process());
}

// A signal ends it at once, since it writes no files.
int command_replay(const Arguments& arguments, bool /*quiet*/) {
  ReplayOptions options = options_from(arguments, replay_flags());
  options.path = required(command("replay"), arguments).front();
  options.data = data_settings(arguments);
  return run_replay(options);
}

int command_ckpt_ls(const Arguments& arguments, bool /*quiet*/) {
  CkptLsOptions options = options_from(arguments, ckpt_ls_flags());
  options.path = required(command("ckpt ls"), arguments).front();
  return run_ckpt_ls(options);
}

int command_ckpt_verify(const Arguments& arguments, bool quiet) {
  CkptVerifyOptions options = options_from(arguments, ckpt_verify_flags());
  options.path = required(command("ckpt verify"), arguments).front();
  options.quiet = options.quiet || quiet;
  return run_ckpt_verify(options);
}

int command_ckpt_diff(const Arguments& arguments, bool /*quiet*/) {
  const Words& paths = required(command("ckpt diff"), arguments);
  return run_ckpt_diff({.first = paths[0], .second = paths[1]});
}

int command_ckpt_export(const Arguments& arguments, bool quiet) {
  CkptExportOptions options = options_from(arguments, ckpt_export_flags());
  const Words& paths = required(command("ckpt export"), arguments);
  options.path = paths[0];
  options.file = paths[1];
  options.quiet = options.quiet || quiet;
  return run_ckpt_export(options);
}

int command_verify_resume(const Arguments& arguments, bool quiet) {
  VerifyResumeOptions options = options_from(arguments, verify_resume_flags());
  options.train_flags = arguments.rest;
  options.quiet = options.quiet || quiet;
  return run_verify_resume(options, stop_of_process());
}

int command_doctor(const Arguments& arguments, bool quiet) {
  DoctorOptions options = options_from(arguments, doctor_flags());
  if (!arguments.positionals.empty()) {
    options.run = arguments.positionals.front();
    if (options.run.empty())
      throw ConfigError("doctor: RUN is empty; give the output folder of a run, or nothing");
  }
  options.quiet = options.quiet || quiet;
  return run_doctor(options);
}

int command_env(const Arguments& /*arguments*/, bool /*quiet*/) { return run_env(); }

}  // namespace gradstep
