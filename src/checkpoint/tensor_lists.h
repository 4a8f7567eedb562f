// All tensors of a state, whatever they are of.
#pragma once

#include <array>
#include <cstddef>

#include "gradstep/checkpoint/checkpoint.h"

namespace gradstep {

[[nodiscard]] inline std::array<const NamedTensors*, 4> tensor_lists(const TrainState& state) {
  return {&state.model, &state.optimizer, &state.ema, &state.user.tensors};
}

[[nodiscard]] inline size_t num_tensors(const TrainState& state) {
  size_t num = 0;
  for (const NamedTensors* tensors : tensor_lists(state)) num += tensors->size();
  return num;
}

}  // namespace gradstep
