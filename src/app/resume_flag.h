// --resume none|auto|PATH: which checkpoint a start goes on from, and in which folder.
#pragma once

#include <optional>
#include <string>

#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/checkpoint/output_dir.h"

namespace gradstep {

// The folder that a start writes to: as asked, or with --resume PATH the run that PATH belongs to; empty: a
// new one.
[[nodiscard]] std::string resume_folder(const std::string& resume, const std::string& output_dir);

// Whether a start may enter a folder that holds a run already: it does so only to go on with that run.
[[nodiscard]] OutputDir::Use output_dir_use(const std::string& resume, const std::string& output_dir);

// By --resume: nothing for a new run (none; auto where there is no checkpoint yet). Throws CheckpointError
// where PATH holds none or all are broken, and where auto finds a run that has ended, but none of its
// checkpoints; ConfigError where PATH is not the newest one of the folder that
// the run goes on in, since what came after it would be lost.
[[nodiscard]] std::optional<FoundCheckpoint> checkpoint_to_resume(const std::string& resume,
                                                                  const std::string& output_dir);

}  // namespace gradstep
