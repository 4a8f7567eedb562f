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

// Settings as `recorded`, and over them `given` (key, text) by the user, with which the recorded folder is
// forgotten if another data set is named. Throws CheckpointError naming `file`, and ConfigError for what the
// user gave.
[[nodiscard]] std::unique_ptr<RunSettings> restore_settings(
    const std::string& file, const std::map<std::string, std::string>& recorded,
    const std::vector<std::pair<std::string, std::string>>& given);

// The task of the file's settings for this kind of data, on the CPU, with the file's weights. Throws
// CheckpointError where the two do not fit, before a model is built that the file is too small for.
[[nodiscard]] Task build_task(const std::string& path, const ModelFile& file, const RunSettings& settings,
                              const DatasetSpec& spec);

}  // namespace gradstep
