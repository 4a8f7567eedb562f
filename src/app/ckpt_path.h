// What the user names to gradstep ckpt and verify-resume: a run's output folder, or one checkpoint.
#pragma once

#include <string>
#include <vector>

#include "gradstep/checkpoint/checkpoint.h"

namespace gradstep {

// Paths of all checkpoints of the run, oldest first, or of the one that `path` is; at least one. Throws
// CheckpointError if there is none.
[[nodiscard]] std::vector<std::string> checkpoints_at(const std::string& path);

// The checkpoint, or the newest of the run that verifies, read and verified. Throws CheckpointError.
[[nodiscard]] FoundCheckpoint load_checkpoint_at(const std::string& path);
// Names on stderr the newer ones that were passed over.
void warn_of_broken(const FoundCheckpoint& found);

// The last part of a path: "step-00000120".
[[nodiscard]] std::string name_of(const std::string& path);
// Of all files in a folder; what cannot be looked at counts as nothing.
[[nodiscard]] uint64_t folder_bytes(const std::string& path);

}  // namespace gradstep
