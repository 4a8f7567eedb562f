// Child: this program once more, as a process of its own with its output in files.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gradstep/base/stop.h"

namespace gradstep {

struct ChildOptions {
  std::vector<std::string> arguments{};  // behind the program's name
  std::string log_path{};                // stdout; stderr goes to log_path + ".err"
  // Looked at every millisecond: true kills the child, SIGKILL, once. Empty: never.
  std::function<bool()> kill_when{};
};

struct ChildEnd {
  int exit_code = 0;         // 128 + the signal where one ended it
  bool killed = false;       // by kill_when
  std::string error_line{};  // the last line on its stderr, without "gradstep: "; empty: none
};

// Runs it to its end, and reaps it; it is killed where this process ends before, in whichever way. Its
// process group is its own, so that a terminal's Ctrl-C reaches it once: a stop that was requested is handed
// on as the signal it came as. Throws std::system_error when it cannot be started.
[[nodiscard]] ChildEnd run_child(const ChildOptions& options, const StopToken& stop);

}  // namespace gradstep
