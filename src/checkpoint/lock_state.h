// Whether a process holds the lock of an output folder, as seen by one that does not want it.
// no torch
#pragma once

#include <string>

namespace gradstep {

enum class LockState {
  kFree,      // there is no lock file
  kLeftOver,  // the file of a process that is gone; the next start takes it
  kHeld,
};

struct FolderLock {
  LockState state = LockState::kFree;
  std::string owner{};  // "pid 4711 on host"; may be empty
};

// Changes nothing, and does not keep a run from starting: it asks /proc/locks, then whether the process that
// the file names is alive. If neither tells (a process of another machine or container), it tries a shared
// lock without waiting and gives it back at once. Throws AccessError for a lock file that cannot be read, and
// CheckpointError for what no run can lock: a link, a pipe, a folder.
[[nodiscard]] FolderLock look_at_lock(const std::string& output_dir);

}  // namespace gradstep
