// App::run(): dispatch over the subcommands, and the one place that prints an error line.
// no torch
#include <torch/version.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "app/program.h"
#include "base/allocator.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "commands/arguments.h"
#include "commands/command_info.h"
#include "commands/failure.h"
#include "commands/help.h"
#include "commands/terminal.h"
#include "gradstep/app/app.h"
#include "gradstep/base/error.h"
#include "gradstep/base/stop.h"
#include "gradstep/base/version.h"

namespace gradstep {
namespace {

using Words = std::vector<std::string>;

constexpr int kWidestHelp = 100;

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

int run_command(const CommandInfo& info, const Words& words, bool quiet) {
  if (asks_for_help(words)) return print(command_help(info, help_width()));
  return info.run(parse_arguments(info, words), quiet);
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
  throw ConfigError((is_flag ? "unknown flag " : "unknown command ") + shortened(word) +
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
      return run_command(*info, behind(info->name == word ? 1 : 2), quiet);
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
    program().catalog.check();
    return dispatch(words);
  } catch (...) {
    const Failure failure = describe_failure(std::current_exception());
    std::fflush(stdout);
    write_error(failure.line);
    return failure.exit_code;
  }
}

}  // namespace

int App::run(int argc, char** argv) {
  open_missing_streams();
  ignore_write_signals();
  keep_freed_memory();
  if (!parts_) {
    std::fputs("this App was moved from; run the one that it was moved to\n", stderr);
    return static_cast<int>(ExitCode::kUnexpected);
  }
  set_program(*parts_);
  const int exit_code = guarded(Words(argv + std::min(argc, 1), argv + argc));
  std::fflush(stdout);
  return exit_code;
}

}  // namespace gradstep
