// What an engine settles once, before its first window: which parameters it trains, and by which optimizer.
#pragma once

#include <memory>
#include <vector>

#include "gradstep/step/engine.h"

namespace gradstep {

struct EngineParameters {
  std::unique_ptr<Optimizer> optimizer{};  // over those that train
  std::vector<const void*> all{};          // the tensors that the module has, in its order
  NamedTensors frozen{};                   // the others; none of them requires a gradient any more
};

// Parameters by name, each tensor once: named_parameters() lists a shared one under every name it has.
[[nodiscard]] NamedTensors distinct_parameters(const torch::nn::Module& module);

// Throws ConfigError for a task that lacks something, options that make no sense, and parameters that cannot
// be trained.
[[nodiscard]] EngineParameters engine_parameters(const Task& task, const EngineOptions& options);

// Throws ConfigError naming a parameter that the module has got since, or that was unfrozen.
void require_same_parameters(const torch::nn::Module& module, const EngineParameters& parameters);

}  // namespace gradstep
