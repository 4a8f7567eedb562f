// What gradstep doctor says of a disk: its kind, its room, and whether it locks files and keeps them.
#pragma once

#include <cstdint>
#include <string>

#include "commands/finding.h"

namespace gradstep {

struct DiskFacts {
  std::string folder{};  // that is asked about
  int64_t type = 0;      // statfs::f_type
  uint64_t free_bytes = 0;
  uint64_t needed_bytes = 0;  // by the next saves of a run; 0: not known
  std::string not_tried{};    // why no file could be tried there; empty: one was
  std::string lock_error{};   // empty: flock works
  std::string sync_error{};   // empty: a file can be written and synced
  double sync_seconds = 0;    // what that took
};

// Throws std::system_error if the disk cannot be asked. Tries a file of its own in `probe_folder`, which has
// no name by the time it is written; empty: tries none. It is skipped if that is on another disk.
[[nodiscard]] DiskFacts disk_facts(const std::string& folder, const std::string& probe_folder);

[[nodiscard]] Finding examine_disk(const DiskFacts& facts);

// The disk of the run, and of its checkpoints if they have their own; the file is tried in the folder above
// the run, which itself stays as it is. Empty: the disk of the current folder.
void examine_disks(const std::string& run, const Tell& tell);

}  // namespace gradstep
