// safetensors: the file format of weights that Python's safetensors opens. Reader and writer; the reader trusts nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gradstep/io/file_system.h"

namespace gradstep {

struct SafetensorsFile {
  std::vector<std::pair<std::string, at::Tensor>> tensors;  // in file order; each owns its memory
  std::map<std::string, std::string> metadata;
};

// Writes contiguous copies of the tensors (moved to the CPU) atomically. Metadata gets "format": "pt".
// Tensors are ordered as Python's writer does: by dtype alignment, largest first, then by name. A tensor object or storage
// that appears under two names is stored once, and the second name is recorded in the metadata as "alias:<name>".
void write_safetensors(FileSystem& file_system, const std::string& path,
                       const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                       const std::map<std::string, std::string>& metadata);

// Throws CheckpointError naming file, offset and what is wrong. Aliases in the metadata come back as tensors of their own name.
[[nodiscard]] SafetensorsFile read_safetensors(const std::string& path);

}  // namespace gradstep
