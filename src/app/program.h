// What App::run() works with: the program's name, its recipes and its own commands.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/catalog.h"
#include "gradstep/app/app.h"
#include "gradstep/config/flags.h"

namespace gradstep {

struct Arguments;

struct CommandInfo {
  std::string name{};        // two words where several go under one name: "ckpt ls"
  std::string summary{};     // one line, for the list of subcommands
  std::string positional{};  // "MODEL", "PATH FILE", "[RUN]" (optional); empty: takes none
  std::string positional_help{};
  std::string rest{};  // "TRAIN-FLAGS": words after "--", taken as they are; empty: takes none
  std::vector<FlagInfo> flags{};
  std::vector<std::string> examples{};
  // Returns the exit code. `quiet`: --quiet was given before the name of the command.
  std::function<int(const Arguments& arguments, bool quiet)> run{};
};

// A command that only this program has, such as gradstep's fetch.
struct ExtraCommand {
  CommandInfo info{};
  std::string before{};  // the command before which the help lists it; empty: at the end
};

struct Program {
  std::string name{};
  Catalog catalog{};
  std::vector<ExtraCommand> extra{};
};

struct App::Parts : Program {};

// What an App holds: for main programs of ours and for tests.
struct AppAccess {
  static Program& program(App& app) { return *app.parts_; }
};

// The program of this process, which help, messages and commands speak of. REQUIRES: set before any of them
// is asked for; what it is set to outlives them.
void set_program(const Program& program);
[[nodiscard]] const Program& program();

}  // namespace gradstep
