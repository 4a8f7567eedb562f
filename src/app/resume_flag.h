// --resume none|auto|PATH: which checkpoint a start goes on from, and in which folder.
#pragma once

#include <optional>
#include <string>

#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/checkpoint/output_dir.h"

namespace gradstep {

// The folder that a start writes to: output_dir, or if that is empty and `resume` is a path, the run that the
// path belongs to; empty: a new folder.
[[nodiscard]] std::string resume_folder(const std::string& resume, const std::string& output_dir);

// Whether a start may enter a folder that holds a run already: it does so only to go on with that run.
[[nodiscard]] OutputDir::Use output_dir_use(const std::string& resume, const std::string& output_dir);

// The checkpoint that `resume` names; nothing for "none", and for "auto" if there is no checkpoint yet.
// Throws CheckpointError if a path has none or all are broken, and if "auto" finds a run that has ended but
// has lost its checkpoints; ConfigError if the path is not the newest checkpoint of the folder that the run
// goes on in, since the later ones would be lost.
[[nodiscard]] std::optional<FoundCheckpoint> checkpoint_to_resume(const std::string& resume,
                                                                  const std::string& output_dir);

// Whether the folder holds the rows of a run that ended without an error. It had a checkpoint then.
[[nodiscard]] bool has_ended(const std::string& output_dir);

}  // namespace gradstep
