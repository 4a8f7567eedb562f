// SavedRun: the recipes of a run as a file of it recorded them: from these, eval and replay build data and
// model again.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/run_settings.h"
#include "gradstep/checkpoint/model_file.h"

namespace gradstep {

// The `recorded` settings, overridden by those that the user gave (key, text). The recorded folder and
// the validation part are dropped if the user names another data set. Throws CheckpointError naming `file`,
// and ConfigError for what the user gave.
[[nodiscard]] std::unique_ptr<RunSettings> restore_settings(
    const std::string& file, const std::map<std::string, std::string>& recorded,
    const std::vector<std::pair<std::string, std::string>>& given);

// The task that the file's settings describe, for this kind of data, on the CPU, with the file's weights.
// Throws CheckpointError if the two do not fit; a model that is larger than the file is refused before it is
// built.
[[nodiscard]] Task build_task(const std::string& path, const ModelFile& file, const RunSettings& settings,
                              const DatasetSpec& spec);

}  // namespace gradstep
