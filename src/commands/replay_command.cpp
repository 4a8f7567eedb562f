// Puts together what a black box records: model, data, threads, matrix products.
#include "commands/replay_command.h"

#include <torch/torch.h>

#include <algorithm>

#include "app/make_job.h"
#include "app/saved_run.h"
#include "base/utf8.h"
#include "commands/terminal.h"
#include "gradstep/base/error.h"
#include "incident/black_box.h"

namespace gradstep {
namespace {

bool takes_folder(const RunSettings& settings) {
  const std::vector<FlagInfo> flags = settings.data_flags();
  return std::ranges::find(flags, "data_dir", &FlagInfo::key) != flags.end();
}

// The part that the run trained on.
std::shared_ptr<const Dataset> open_data(const RunSettings& settings, const BlackBox& box) {
  const RunConfig& config = settings.config;
  std::shared_ptr<const Dataset> train = load_split(settings, Split::kTrain);
  const std::string fingerprint = to_utf8(train->fingerprint());  // as the box has it
  if (fingerprint == box.dataset_fingerprint) return train;
  const std::string folder = settings.dataset().folder();
  throw DataError("data set " + config.dataset + (folder.empty() ? "" : " in " + folder) +
                  ": its samples are not those of the run (fingerprint " + fingerprint + ", recorded " +
                  box.dataset_fingerprint + "); give the data of the run" +
                  (takes_folder(settings) ? " with --data-dir" : ""));
}

// What the box recorded of data, model and process. A replay makes no step, and the program may have put a
// schedule or an optimizer of its own in the place of the flags, which take no text of these.
std::map<std::string, std::string> recorded_settings(const BlackBox& box) {
  std::map<std::string, std::string> recorded = box.info.settings;
  for (const char* key : {"data_dir", "val_fraction", "seed", "deterministic", "device", "threads", "workers",
                          "memory_limit"}) {
    const auto found = box.settings.find(key);
    if (found != box.settings.end()) recorded.insert(*found);
  }
  return recorded;
}

}  // namespace

int run_replay(const ReplayOptions& options) {
  BlackBox box = read_black_box(options.path);
  const std::unique_ptr<RunSettings> settings =
      restore_settings(options.path, recorded_settings(box), options.data);
  RunConfig& config = settings->config;
  if (!options.device.empty()) config.device = options.device;
  if (options.threads >= 0) config.threads = options.threads;
  const c10::Device device = configure_process(process_options(config));
  if (box.matmul == Matmul::kTorch || has_onednn()) use_matmul(box.matmul);
  const std::shared_ptr<const Dataset> train = open_data(*settings, box);
  const Task task = build_task(options.path, {box.info, box.model}, *settings, train->spec());
  task.module->to(device);
  const Examination again = replay(box, task, *train);
  const RecordComparison verdict = compare_with_recorded(box, again);
  box.modules = again.modules;
  box.first_non_finite = again.first_non_finite;
  const bool lacks_state = !verdict.same && task.user_state;
  write_stdout(
      format_norm_table(box) + "\n" + verdict.text +
      (lacks_state ? "; a black box does not hold the state of Task::user_state, which this model has" : "") +
      "\n");
  return static_cast<int>(verdict.same ? ExitCode::kOk : ExitCode::kUnexpected);
}

}  // namespace gradstep
