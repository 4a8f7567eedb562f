// What gradstep doctor says of metrics.jsonl: whole rows, in order, as far as the newest checkpoint knows.
#pragma once

#include <string>
#include <vector>

#include "commands/finding.h"
#include "gradstep/checkpoint/checkpoint.h"

namespace gradstep {

// Two findings: "rows", what is in the file, and "end", how the run ended. `newest`: of the newest whole
// checkpoint, without tensors; null: there is none. `live`: a process is writing rows. `ended_for_good`,
// unless null, is set where nothing is left to train.
[[nodiscard]] std::vector<Finding> examine_rows(const std::string& run, const TrainState* newest, bool live,
                                                bool* ended_for_good = nullptr);

}  // namespace gradstep
