// The models that --model names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gradstep/data/dataset.h"
#include "gradstep/model/task.h"

namespace gradstep {

struct ModelOptions {
  std::string name = "mlp";
  int64_t hidden = 256;
  double dropout = 0;
  double label_smoothing = 0;
};

[[nodiscard]] std::vector<std::string> model_names();

// Builds the model for samples of this kind, on the CPU, drawing its weights from the default generator.
// Throws ConfigError for an unknown name.
[[nodiscard]] Task make_task(const ModelOptions& options, const DatasetSpec& spec);

struct ModelSize {
  int64_t parameters = 0;
  int64_t activations = 0;  // numbers kept of one sample between forward and backward, at the least
};
// Found without building the model. Throws ConfigError for an unknown name.
[[nodiscard]] ModelSize model_size(const ModelOptions& options, const DatasetSpec& spec);

// "mlp 784-256-10"
[[nodiscard]] std::string describe_model(const ModelOptions& options, const DatasetSpec& spec);

}  // namespace gradstep
