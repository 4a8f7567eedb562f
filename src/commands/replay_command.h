// gradstep replay: runs the update of a black box again and compares what each module gave.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gradstep {

struct ReplayOptions {
  std::string path{};  // a black box file
  // Settings of the data (key, text) that take the place of the recorded ones.
  std::vector<std::pair<std::string, std::string>> data{};
  std::string device{};  // empty: as recorded
  int64_t threads = -1;  // -1: as recorded; 0: cores within the cgroup quota
};

// Returns the exit code: 0 when every number is the same, 1 when not. Prints to stdout; throws what Error and
// std::system_error stand for.
int run_replay(const ReplayOptions& options);

}  // namespace gradstep
