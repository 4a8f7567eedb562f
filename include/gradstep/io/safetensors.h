// safetensors: the file format of weights that Python's safetensors opens. Reader and writer; the reader
// trusts nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gradstep/io/file_system.h"

namespace gradstep {

/// Tensors by name, in a fixed order.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

struct SafetensorsFile {
  NamedTensors tensors;  // in file order; each owns its memory
  std::map<std::string, std::string> metadata;
};

// Writes contiguous copies of the tensors (moved to the CPU) atomically. Metadata gets "format": "pt" unless
// it has a format. Tensors are ordered as Python's writer does: by dtype, largest first, then by name. A
// tensor that appears under two names, or two views of the same elements, is stored once under the first, and
// the second is recorded in the metadata as "alias:<second>": "<first>". Synchronises the device. Throws
// CheckpointError when the file cannot be written; what was at `path` before is then still there. Returns its
// bytes.
uint64_t write_safetensors(FileSystem& file_system, const std::string& path, const NamedTensors& tensors,
                           const std::map<std::string, std::string>& metadata);

// Throws CheckpointError naming file, offset and what is wrong. Aliases come back as further names of the
// same tensor, behind the others, and are not in the metadata then.
[[nodiscard]] SafetensorsFile read_safetensors(const std::string& path);

}  // namespace gradstep
