// The part of a black box that is not tensors nor about the model, as one JSON text.
#pragma once

#include <string>

#include "incident/black_box.h"

namespace gradstep {

// The cause of a box whose window was not finite; any other cause is a spike.
inline constexpr const char* kNotFinite = "not finite";

[[nodiscard]] std::string black_box_json(const BlackBox& box);
// Fills all but model and info. Throws CheckpointError naming `path` and key.
void read_black_box_json(const std::string& path, const std::string& text, BlackBox& box);

}  // namespace gradstep
