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
  std::vector<std::string> arguments{};  // after the program's name
  std::string log_path{};                // stdout; stderr goes to log_path + ".err"
  // Looked at every millisecond: true kills the child, SIGKILL, once. Empty: never.
  std::function<bool()> kill_when{};
};

struct ChildEnd {
  int exit_code = 0;         // 128 + the signal, if one ended it
  bool killed = false;       // by kill_when
  std::string error_line{};  // the last line on its stderr, without "gradstep: "; empty: none
};

// Runs the child to its end and reaps it. If this process ends first, the child is killed. The child has a
// process group of its own, so that a terminal's Ctrl-C does not reach it twice; a stop that was requested is
// passed on as the same signal. Throws std::system_error if it cannot be started.
[[nodiscard]] ChildEnd run_child(const ChildOptions& options, const StopToken& stop);

}  // namespace gradstep
