// From the arguments of each command to its options, and on to what it does.
// no torch
#include "app/run_command.h"

#include <algorithm>

#include "app/arguments.h"
#include "app/command_info.h"
#include "app/env_command.h"
#include "app/program.h"
#include "app/terminal.h"
#include "app/train_command.h"
#include "app/train_config.h"
#include "gradstep/base/stop.h"

namespace gradstep {
namespace {

using Words = std::vector<std::string>;

// Unlike StopSignals it leaves the handlers in place: a signal that comes while the process winds up changes
// nothing any more.
class Signals {
 public:
  Signals() { install_stop_signals(token_); }
  ~Signals() { detach_stop_signals(); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  [[nodiscard]] StopToken& token() { return token_; }

 private:
  StopToken token_;
};

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
  for (const std::string& warning : resolve_train_settings(arguments, gradstep_environment(), settings))
    write_warning(warning);
  settings.config.quiet = settings.config.quiet || quiet;
  Signals signals;
  return run_train(settings, signals.token());
}

int command_eval(const Arguments& arguments, bool quiet) {
  EvalOptions options = options_from(arguments, eval_flags());
  options.model_path = required(command("eval"), arguments).front();
  options.data = data_settings(arguments);
  options.quiet = options.quiet || quiet;
  Signals signals;
  return run_eval(options, signals.token());
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
  Signals signals;
  return run_verify_resume(options, signals.token());
}

int command_env(const Arguments& /*arguments*/, bool /*quiet*/) { return run_env(); }

}  // namespace gradstep
