// What "auto" becomes where only the speed tells: threads, precision, matrix products.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/run_config.h"
#include "gradstep/base/stop.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/data/dataset.h"
#include "gradstep/model/task.h"
#include "step/precision_probe.h"

namespace gradstep {

struct SettledSpeed {
  PrecisionChoice precision{};
  std::string threads_reason{};  // empty: the number was given
  bool measured_threads = false;
};

// The number that a run recorded for a setting; nothing if it recorded none, or for null.
[[nodiscard]] std::optional<int64_t> recorded_integer(const TrainState* before, const std::string& key);

// Takes what the settings say, else what `before` settled (null: a new run), else what is the fastest. Under
// config.deterministic nothing is measured. Sets the number of threads and the matrix products of the
// process. Throws Error with the reason of `stop` (null: none) if that is requested while it measures.
[[nodiscard]] SettledSpeed settle_speed(const RunConfig& config, const Task& task, const Dataset& train,
                                        int64_t micro_batch, const TrainState* before, const StopToken* stop);

}  // namespace gradstep
