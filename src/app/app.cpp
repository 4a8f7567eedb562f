// Dispatch over the subcommands, and the one place that prints an error line.
// no torch
#include "gradstep/app/app.h"

#include <torch/version.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "app/arguments.h"
#include "app/command_info.h"
#include "app/env_command.h"
#include "app/eval_command.h"
#include "app/failure.h"
#include "app/help.h"
#include "app/program.h"
#include "app/replay_command.h"
#include "app/terminal.h"
#include "app/train_command.h"
#include "app/train_config.h"
#include "base/allocator.h"
#include "base/nearest.h"
#include "gradstep/base/error.h"
#include "gradstep/base/stop.h"
#include "gradstep/base/version.h"

namespace gradstep {
namespace {

using Words = std::vector<std::string>;

constexpr int kWidestHelp = 100;

// Signal handlers use the token only while this object lives. They stay installed afterwards: a signal while
// the process shuts down must not change its exit code.
class StopSignals {
 public:
  StopSignals() { install_stop_signals(token_); }
  ~StopSignals() { detach_stop_signals(); }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  [[nodiscard]] StopToken& token() { return token_; }

 private:
  StopToken token_;
};

int print(const std::string& text) {
  write_stdout(text);
  return static_cast<int>(ExitCode::kOk);
}

int help_width() { return std::min(terminal_width(stdout), kWidestHelp); }

bool asks_for_help(const Words& words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "-h" || word == "--help") return true;
  }
  return false;
}

int train(const Arguments& arguments, bool quiet) {
  RunSettings settings(program().catalog);
  for (const std::string& warning : resolve_train_settings(arguments, gradstep_environment(), settings))
    write_warning(warning);
  settings.config.quiet = settings.config.quiet || quiet;
  StopSignals signals;
  return run_train(settings, signals.token());
}

// Those of the arguments that are settings of the data.
std::vector<std::pair<std::string, std::string>> data_settings(const Arguments& arguments) {
  std::vector<std::pair<std::string, std::string>> found;
  const std::vector<FlagInfo> flags = RunSettings(program().catalog).data_flags();
  for (const auto& [key, text] : arguments.flags) {
    if (std::ranges::find(flags, key, &FlagInfo::key) != flags.end()) found.emplace_back(key, text);
  }
  return found;
}

int eval(const Arguments& arguments, bool quiet) {
  EvalOptions options = options_from(arguments, eval_flags());
  options.model_path = required(command("eval"), arguments).front();
  options.data = data_settings(arguments);
  options.quiet = options.quiet || quiet;
  StopSignals signals;
  return run_eval(options, signals.token());
}

// A signal ends it at once, since it writes no files.
int replay(const Arguments& arguments) {
  ReplayOptions options = options_from(arguments, replay_flags());
  options.path = required(command("replay"), arguments).front();
  options.data = data_settings(arguments);
  return run_replay(options);
}

int ckpt_ls(const Arguments& arguments, bool /*quiet*/) {
  CkptLsOptions options = options_from(arguments, ckpt_ls_flags());
  options.path = required(command("ckpt ls"), arguments).front();
  return run_ckpt_ls(options);
}

int ckpt_verify(const Arguments& arguments, bool quiet) {
  CkptVerifyOptions options = options_from(arguments, ckpt_verify_flags());
  options.path = required(command("ckpt verify"), arguments).front();
  options.quiet = options.quiet || quiet;
  return run_ckpt_verify(options);
}

int ckpt_diff(const Arguments& arguments, bool /*quiet*/) {
  const Words& paths = required(command("ckpt diff"), arguments);
  return run_ckpt_diff({.first = paths[0], .second = paths[1]});
}

int ckpt_export(const Arguments& arguments, bool quiet) {
  CkptExportOptions options = options_from(arguments, ckpt_export_flags());
  const Words& paths = required(command("ckpt export"), arguments);
  options.path = paths[0];
  options.file = paths[1];
  options.quiet = options.quiet || quiet;
  return run_ckpt_export(options);
}

int verify_resume(const Arguments& arguments, bool quiet) {
  VerifyResumeOptions options = options_from(arguments, verify_resume_flags());
  options.train_flags = arguments.rest;
  options.quiet = options.quiet || quiet;
  StopSignals signals;
  return run_verify_resume(options, signals.token());
}

int run_command(const std::string& name, const Words& words, bool quiet) {
  const CommandInfo& info = command(name);
  if (asks_for_help(words)) return print(command_help(info, help_width()));
  const Arguments arguments = parse_arguments(info, words);
  if (name == "train") return train(arguments, quiet);
  if (name == "eval") return eval(arguments, quiet);
  if (name == "replay") return replay(arguments);
  if (name == "ckpt ls") return ckpt_ls(arguments, quiet);
  if (name == "ckpt verify") return ckpt_verify(arguments, quiet);
  if (name == "ckpt diff") return ckpt_diff(arguments, quiet);
  if (name == "ckpt export") return ckpt_export(arguments, quiet);
  if (name == "verify-resume") return verify_resume(arguments, quiet);
  for (const ExtraCommand& extra : program().extra) {
    if (extra.info.name == name) return extra.run(arguments, quiet);
  }
  return run_env();
}

int print_version() {
  const std::string own = program().name == "gradstep" ? "" : program().name + ", made with ";
  return print(own + "gradstep " + std::string(version()) + " (commit " + std::string(git_commit()) +
               "), LibTorch " + TORCH_VERSION + "\n");
}

[[noreturn]] void refuse(const std::string& word) {
  const bool is_flag = word[0] == '-';
  Words known = is_flag ? Words{"--help", "--version", "--quiet"} : Words{"help"};
  std::string names;
  for (const CommandInfo& info : commands()) {
    if (!is_flag) known.push_back(info.name);
    names += (names.empty() ? "" : ", ") + info.name;
  }
  const std::string hint = did_you_mean(word, known);
  throw ConfigError((is_flag ? "unknown flag " : "unknown command ") + word +
                    (hint.empty() ? "; the commands are " + names : hint + " The commands are " + names));
}

// The command that the word at `first` names, alone or with the next word; null if there is none.
const CommandInfo* find_command(const Words& words, size_t first) {
  if (first >= words.size()) return nullptr;
  const std::string two_words = words[first] + " " + (first + 1 < words.size() ? words[first + 1] : "");
  for (const CommandInfo& info : commands()) {
    if (info.name == words[first] || info.name == two_words) return &info;
  }
  return nullptr;
}

// "ckpt", of "ckpt ls".
bool is_group(const std::string& word) {
  return std::ranges::any_of(commands(),
                             [&](const CommandInfo& info) { return info.name.starts_with(word + " "); });
}

int help(const Words& words, size_t first) {
  if (const CommandInfo* info = find_command(words, first)) return print(command_help(*info, help_width()));
  const bool group = first < words.size() && is_group(words[first]);
  return print(group ? group_help(words[first], help_width()) : program_help(help_width()));
}

// A group of commands, without the name of one after it.
int run_group(const std::string& group, const Words& words) {
  if (!words.empty() && !asks_for_help({words[0]})) refuse(group + " " + words[0]);
  print(group_help(group, help_width()));
  return static_cast<int>(words.empty() ? ExitCode::kUsage : ExitCode::kOk);
}

// The flags before the subcommand, then the subcommand.
int dispatch(const Words& words) {
  bool quiet = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto behind = [&](size_t num_words) {
      return Words(words.begin() + static_cast<std::ptrdiff_t>(i + num_words), words.end());
    };
    if (const CommandInfo* info = find_command(words, i)) {
      return run_command(info->name, behind(info->name == word ? 1 : 2), quiet);
    }
    if (is_group(word)) return run_group(word, behind(1));
    if (word == "-h" || word == "--help" || word == "help") return help(words, i + 1);
    if (word == "--version") return print_version();
    if (word == "--help-markdown") return print(markdown_help());
    if (word != "-q" && word != "--quiet") refuse(word.empty() ? "''" : word);
    quiet = true;
  }
  print(program_help(help_width()));
  return static_cast<int>(ExitCode::kUsage);
}

int guarded(const Words& words) {
  try {
    return dispatch(words);
  } catch (...) {
    const Failure failure = describe_failure(std::current_exception());
    std::fflush(stdout);
    write_error(failure.line);
    return failure.exit_code;
  }
}

}  // namespace

App::App(std::string name) : parts_(std::make_unique<Parts>()) { parts_->name = std::move(name); }
App::~App() = default;
App::App(App&&) noexcept = default;
App& App::operator=(App&&) noexcept = default;

App& App::add_model(const std::string& name, std::function<std::unique_ptr<ModelRecipe>()> make) {
  parts_->catalog.add_model(name, std::move(make));
  return *this;
}

App& App::add_dataset(const std::string& name, std::function<std::unique_ptr<DataRecipe>()> make) {
  parts_->catalog.add_dataset(name, std::move(make));
  return *this;
}

App& App::add_recipe(const std::string& name, std::function<std::shared_ptr<Recipe>()> make) {
  parts_->catalog.add_recipe(name, std::move(make));
  return *this;
}

App& App::command(ExtraCommand command) {
  parts_->extra.push_back(std::move(command));
  return *this;
}

int App::run(int argc, char** argv) {
  open_missing_streams();
  ignore_write_signals();
  keep_freed_memory();
  set_program(*parts_);
  const int exit_code = guarded(Words(argv + std::min(argc, 1), argv + argc));
  std::fflush(stdout);
  return exit_code;
}

}  // namespace gradstep
