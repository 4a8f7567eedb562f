// gradstep eval: loss and accuracies of a saved model on the evaluation part of a data set.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gradstep/base/stop.h"

namespace gradstep {

struct EvalOptions {
  std::string model_path{};  // a model.safetensors, or an output folder that holds one
  // Settings of the data (key, text) that take the place of the recorded ones.
  std::vector<std::pair<std::string, std::string>> data{};
  std::string device = "auto";     // auto, cpu, cuda, cuda:N
  std::string precision{};         // empty: as recorded
  int64_t threads = 0;             // 0: cores within the cgroup quota
  int64_t batch_size = 0;          // 0: chosen by the program
  std::string predictions_path{};  // CSV to write; empty: none
  bool force = false;              // replace that file if it is there already
  bool json = false;               // one JSON object instead of lines
  bool quiet = false;              // only the last line
};

// Returns the exit code. Prints to stdout; throws what Error and std::system_error stand for.
int run_eval(const EvalOptions& options, StopToken& stop);

}  // namespace gradstep
