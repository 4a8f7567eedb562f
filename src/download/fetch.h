// gradstep fetch: downloads a data set, goes on where an earlier call stopped, and checks every file.
#pragma once

#include <cstdio>
#include <string>

namespace gradstep {

struct FetchOptions {
  std::string name;      // "mnist", "fashion-mnist" or "cifar10"
  std::string data_dir;  // empty: data/<name>
  std::string base_url;  // empty: the public server of the data set
  bool quiet = false;    // nothing is printed
};

// Files that are there and right are named and left. Returns the exit code; prints to `out`, with a bar that
// redraws itself where that is a terminal. Throws ConfigError for an unknown name, DataError when a file
// cannot be had or stored.
int run_fetch(const FetchOptions& options, std::FILE* out, bool is_terminal);

}  // namespace gradstep
