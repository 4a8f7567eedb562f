// Puts together what a black box records: model, data, threads, matrix products.
#include "app/replay_command.h"

#include <torch/torch.h>

#include <filesystem>

#include "app/terminal.h"
#include "gradstep/base/error.h"
#include "gradstep/base/exit_code.h"
#include "gradstep/incident/black_box.h"
#include "run/device.h"

namespace gradstep {
namespace {

std::string data_dir_of(const ReplayOptions& options, const BlackBox& box) {
  if (!options.data_dir.empty()) return options.data_dir;
  const std::string& recorded = box.config.data_dir;
  return std::filesystem::is_directory(recorded) ? recorded : default_data_dir(box.config.dataset);
}

// The part that the run trained on.
std::shared_ptr<const Dataset> open_data(const ReplayOptions& options, const BlackBox& box) {
  const std::string data_dir = data_dir_of(options, box);
  std::shared_ptr<const Dataset> train = load_dataset(box.config.dataset, data_dir, Split::kTrain);
  if (box.config.val_fraction > 0)
    train = split_validation(train, box.config.val_fraction, box.config.seed).train;
  if (train->fingerprint() == box.dataset_fingerprint) return train;
  throw DataError("data set " + box.config.dataset + " in " + data_dir +
                  ": its samples are not those of the run (fingerprint " + train->fingerprint() +
                  ", recorded " + box.dataset_fingerprint + "); give the run's folder with --data-dir");
}

}  // namespace

int run_replay(const ReplayOptions& options) {
  BlackBox box = read_black_box(options.path);
  if (!options.device.empty()) box.config.device = options.device;
  if (options.threads >= 0) box.config.threads = options.threads;
  const c10::Device device = settle_device(box.config);
  if (box.matmul == Matmul::kTorch || has_onednn()) use_matmul(box.matmul);
  LoadedModel loaded = load_model(options.path);
  const std::shared_ptr<const Dataset> train = open_data(options, box);
  if (train->spec().input_shape != box.info.dataset.input_shape) {
    throw CheckpointError(options.path + ": its model is for other pictures than those of " +
                          box.config.dataset + "; use another file");
  }
  loaded.task.module->to(device);
  const Examination again = replay(box, loaded.task, *train);
  const std::string verdict = compare_with_recorded(box, again);
  box.modules = again.modules;
  box.first_non_finite = again.first_non_finite;
  write_stdout(format_norm_table(box) + "\n" + verdict + "\n");
  return static_cast<int>(verdict == kSameAsRecorded ? ExitCode::kOk : ExitCode::kUnexpected);
}

}  // namespace gradstep
