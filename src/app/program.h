// What App::run() works with: the program's name, its recipes and its own commands.
#pragma once

#include <string>
#include <vector>

#include "app/catalog.h"
#include "app/command_info.h"
#include "gradstep/app/app.h"

namespace gradstep {

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
