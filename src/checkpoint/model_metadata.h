// ModelInfo as the metadata of a safetensors file, and back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "gradstep/checkpoint/model_file.h"

namespace gradstep {

// Whether every model file has the key for itself, or a black box: no setting may have it.
[[nodiscard]] bool is_file_key(const std::string& key);
// Throws ConfigError if a setting has such a key, or one that is not UTF-8.
void check_model_settings(const std::map<std::string, std::string>& settings);

// Keys begin with "gradstep.". Throws ConfigError as check_model_settings(). Bytes of texts that are not
// UTF-8 are replaced.
[[nodiscard]] std::map<std::string, std::string> model_metadata(const ModelInfo& info);

// The update after which the model file at `path` was written; nothing if the file is missing, broken or of
// another kind.
[[nodiscard]] std::optional<int64_t> exported_update(const std::string& path);

// Throws CheckpointError naming `path` and the key that is missing, of the wrong kind or out of range.
[[nodiscard]] ModelInfo model_info(const std::string& path,
                                   const std::map<std::string, std::string>& metadata);
// The same of a checkpoint, whose model may be described by nothing: then the info is as made by default.
[[nodiscard]] ModelInfo model_info_or_none(const std::string& path,
                                           const std::map<std::string, std::string>& metadata);

}  // namespace gradstep
