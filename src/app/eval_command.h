// gradstep eval: loss and accuracies of a saved model on the evaluation part of a data set.
#pragma once

#include <cstdint>
#include <string>

#include "gradstep/base/stop.h"

namespace gradstep {

struct EvalOptions {
  std::string model_path{};        // a model.safetensors, or an output folder that holds one
  std::string dataset{};           // empty: the one recorded in the model file
  std::string data_dir{};          // empty: the recorded one, or the data set's default folder
  std::string device = "auto";     // auto, cpu, cuda, cuda:N
  std::string precision{};         // empty: as recorded
  int64_t threads = 0;             // 0: cores within the cgroup quota
  int64_t batch_size = 0;          // 0: chosen by the program
  std::string predictions_path{};  // CSV to write; empty: none
  bool json = false;               // one JSON object instead of lines
  bool quiet = false;              // only the last line
};

// Returns the exit code. Prints to stdout; throws what Error and std::system_error stand for.
int run_eval(const EvalOptions& options, StopToken& stop);

}  // namespace gradstep
