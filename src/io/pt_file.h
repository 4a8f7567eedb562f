// write_pt: weights as a .pt file that Python's torch.load opens under its defaults.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "gradstep/io/file_system.h"
#include "gradstep/io/safetensors.h"

namespace gradstep {

// Writes a plain dict, name -> tensor in the given order, atomically. Tensors are contiguous, on the CPU and
// without gradients there, each with memory of its own; a tensor under two names, or two views of the same
// elements, share theirs. The file is made in memory first, which takes its size again. Synchronises the
// device. Throws CheckpointError for a type that torch.load knows no storage of, for a name that is not
// UTF-8, and when the file cannot be written; what was at `path` before is then still there.
void write_pt(FileSystem& file_system, const std::string& path, const NamedTensors& tensors);

}  // namespace gradstep
