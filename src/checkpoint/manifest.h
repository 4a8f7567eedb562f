// The manifest of a checkpoint: which files belong to it, how long they are, and their hashes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gradstep/base/error.h"

namespace gradstep {

struct ManifestFile {
  std::string name{};  // a plain one, in the folder of the manifest
  uint64_t bytes = 0;
  std::string xxh3{};  // 16 hexadecimal digits
  bool operator==(const ManifestFile&) const = default;
};

// A checkpoint that a later gradstep wrote: whole, but not for this one. Never passed over as broken.
class NewerFormat : public CheckpointError {
  using CheckpointError::CheckpointError;
};

inline constexpr char kManifestName[] = "manifest.json";

// The text of manifest.json. Its last line holds the hash of all bytes before that line.
[[nodiscard]] std::string format_manifest(const std::vector<ManifestFile>& files);

// Throws CheckpointError beginning with `path` when the text is not, byte for byte, what somebody sealed with
// that last line, when a name is not plain or given twice, or a number out of range; NewerFormat where the
// format number is above kCheckpointFormat.
[[nodiscard]] std::vector<ManifestFile> parse_manifest(const std::string& path, std::string_view text);

// Reads it, 1 MB at most.
[[nodiscard]] std::vector<ManifestFile> read_manifest(const std::string& path);

}  // namespace gradstep
