// state.json of a checkpoint: all of a TrainState but its tensors, of which it has the list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/json_object.h"
#include "gradstep/checkpoint/checkpoint.h"

namespace gradstep {

// A larger state.json is not read.
inline constexpr int64_t kMaxStateBytes = 64'000'000;

// A tensor of one of the checkpoint's files.
struct TensorSpec {
  std::string name{};
  std::string dtype{};  // "F32"
  std::vector<int64_t> shape{};
  bool operator==(const TensorSpec&) const = default;
};

struct StateFile {
  TrainState state{};               // without tensors and without info, which is in the model's metadata
  std::vector<TensorSpec> model{};  // in the order of the state's tensors
  std::vector<TensorSpec> optimizer{};
  std::vector<TensorSpec> ema{};
  std::vector<TensorSpec> user{};
};

// One line a key. Bytes of texts that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string format_state(const TrainState& state);

// Throws CheckpointError naming `path` and the key that is missing, of the wrong type or out of range. Keys
// it does not know are ignored.
[[nodiscard]] StateFile parse_state(const std::string& path, std::string_view text);

// Parts that a black box has too: an engine but for its spike history.
[[nodiscard]] std::string engine_json(const EngineState& engine);
[[nodiscard]] EngineState read_engine(const JsonObject& engine);

[[nodiscard]] std::vector<TensorSpec> tensor_specs(const NamedTensors& tensors);

}  // namespace gradstep
