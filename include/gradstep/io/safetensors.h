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

/// The content of a safetensors file.
struct SafetensorsFile {
  NamedTensors tensors;                         ///< in file order, on the CPU; each owns its memory
  std::map<std::string, std::string> metadata;  ///< texts of the file's `__metadata__`
};

/// Writes contiguous copies of the tensors (moved to the CPU) into a safetensors file, atomically. Returns
/// the bytes of the file.
///
/// The metadata gets "format": "pt" unless it has a format. Tensors are ordered as Python's writer orders
/// them: by type, largest first, then by name. If a tensor has two names, or two tensors are views of the
/// same elements, they are stored once under the first name, and the metadata records "alias:SECOND":
/// "FIRST". Synchronises the device. Throws CheckpointError if the file cannot be written; what was at `path`
/// before is then still there. Python: safetensors.torch.save_file.
uint64_t write_safetensors(FileSystem& file_system, const std::string& path, const NamedTensors& tensors,
                           const std::map<std::string, std::string>& metadata);

/// Reads a safetensors file. Aliases that write_safetensors() recorded come back as further names of the same
/// tensor, after the others, and not as metadata. Nothing in the file is trusted. Throws CheckpointError
/// naming file, offset and what is wrong. Python: safetensors.torch.load_file.
[[nodiscard]] SafetensorsFile read_safetensors(const std::string& path);

}  // namespace gradstep
