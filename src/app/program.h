// What App::run() works with: the program's name, its recipes and its own commands.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/arguments.h"
#include "app/catalog.h"
#include "app/command_info.h"
#include "gradstep/app/app.h"

namespace gradstep {

// A command that only this program has, such as gradstep's fetch.
struct ExtraCommand {
  CommandInfo info{};
  std::string before{};  // the command before which the help lists it; empty: at the end
  std::function<int(const Arguments& arguments, bool quiet)> run{};
};

struct App::Parts {
  std::string name{};
  Catalog catalog{};
  std::vector<ExtraCommand> extra{};
};

// The program of this process, which help, messages and commands speak of. REQUIRES: set before any of them
// is asked for; what it is set to outlives them.
void set_program(const App::Parts& parts);
[[nodiscard]] const App::Parts& program();

}  // namespace gradstep
