// make_job: from settings to the value that Trainer runs: process, data, model, precision.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/run_settings.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/dist/world.h"
#include "gradstep/run/job.h"
#include "gradstep/run/trainer.h"

namespace gradstep {

struct PreparedJob {
  Job job{};
  // What "auto" became, by key: with these texts in place of the user's the run can be repeated bit for bit,
  // while another measurement might choose differently.
  std::map<std::string, std::string> settled{};
  std::vector<std::string> warnings{};  // one line each, such as an emulated precision
};

// Reads the data, builds the model on the device and settles the precision. Goes on with the precision that
// `before` settled, where the settings leave it open; null: a new run. Seeds the default generators and
// chooses the matrix products; threads, memory limit and determinism are those of the process, which
// configure_process() has set. Throws ConfigError, DataError and Error (out of memory; the reason of `stop`
// if that is requested while it measures).
[[nodiscard]] PreparedJob make_job(const RunSettings& settings, const World& world, at::Device device,
                                   const TrainState* before, const StopToken* stop = nullptr);

// What the command that was asked for passes to configure_process(), before it reads data.
[[nodiscard]] ProcessOptions process_options(const RunConfig& config);
// All but the precision, which is settled later, and the length of the schedule, which the trainer knows.
// total_updates: of the whole run, which a warm-up that nobody asked for follows; 0: not known.
[[nodiscard]] EngineOptions engine_options(const RunConfig& config, int64_t total_updates);
// Throws ConfigError for engine options that make no sense. total_updates: of the whole run; 0: not known.
void validate_engine(const RunConfig& config, int64_t total_updates);
// The data that the settings name: training part and evaluation part. Throws DataError.
[[nodiscard]] DatasetPair load_data(const RunSettings& settings);
// One of the two alone; null if there is nothing to evaluate on.
[[nodiscard]] std::shared_ptr<const Dataset> load_split(const RunSettings& settings, Split split);
// {28, 28} -> "28x28"
[[nodiscard]] std::string input_shape_text(const std::vector<int64_t>& shape);
// "pictures", "sequences" or "samples", for messages.
[[nodiscard]] std::string samples_text(SampleKind kind);
// Which part of the training set is evaluated on. Empty: none, but the evaluation part of the data.
[[nodiscard]] std::string split_off_name(const RunConfig& config);

// Bytes that a run on the CPU takes at the least: parameters and the copy that is saved, windows read ahead,
// and what one sample keeps. 0 for a model whose size is not known before it is built.
[[nodiscard]] double least_memory(const RunConfig& config, const ModelSize& size, const Sampler& sampler,
                                  const DatasetSpec& spec, int64_t world_size);
// What it takes besides, as the built model and its job say: gradients, moments and averages of the
// parameters that train, and copies. The moments of an optimizer of one's own are not known, and not counted.
[[nodiscard]] double training_memory(const Job& job);
// Throws Error (out of memory) if that is more than there is, or more than `limit_bytes`, which the user gave
// (0: none). Linux would grant the memory, and kill the process without a message when it is used.
void check_memory(double needed_bytes, int64_t free_bytes, int64_t limit_bytes = 0);

}  // namespace gradstep
