// Names of the files that a killed run may leave in its output folder, beside checkpoints/.
#pragma once

#include <string_view>

namespace gradstep {

// Whether it is a temporary file of a run: of no use to anybody, and safe to remove while the folder is
// locked.
[[nodiscard]] bool is_leftover(std::string_view name);

}  // namespace gradstep
