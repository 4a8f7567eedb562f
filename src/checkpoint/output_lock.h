// The lock file of an output folder: a text that names its owner, and tells one owner from the next.
// no torch
#pragma once

#include <string>

namespace gradstep {

// A name of our own: the file is removed in the end, and a ".lock" may be somebody else's.
inline constexpr const char* kLockName = ".gradstep.lock";

// The text of the folder's lock file. Empty if there is none. Throws AccessError if that cannot be told.
[[nodiscard]] std::string lock_text(const std::string& output_dir);

// The folder may have been moved away, and another run begun in its place. Throws CheckpointError unless the
// lock file there still has this text, and AccessError if that cannot be told.
void require_owner(const std::string& output_dir, const std::string& text);

}  // namespace gradstep
