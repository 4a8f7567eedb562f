// Whether a checkpoint belongs to a run.
#pragma once

#include <string>

namespace gradstep {

// Whether the checkpoint is one of the run in that folder, however the two paths are written.
[[nodiscard]] bool is_of_run(const std::string& checkpoint, const std::string& output_dir);

}  // namespace gradstep
