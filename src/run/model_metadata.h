// ModelInfo as the metadata of a safetensors file, and back.
#pragma once

#include <map>
#include <string>

#include "gradstep/run/model_file.h"

namespace gradstep {

[[nodiscard]] std::map<std::string, std::string> model_metadata(const ModelInfo& info);

// Throws CheckpointError naming `path` and the key that is missing, of the wrong kind or out of range.
[[nodiscard]] ModelInfo model_info(const std::string& path,
                                   const std::map<std::string, std::string>& metadata);

}  // namespace gradstep
