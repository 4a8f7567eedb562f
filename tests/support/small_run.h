// SmallRun: a whole training run of the program's mlp on a small data set of its own, in a folder that goes
// with the test.
#pragma once

#include <torch/torch.h>

#include <filesystem>

#include "app/make_job.h"
#include "gradstep/io/file_system.h"
#include "gradstep/io/safetensors.h"
#include "gradstep/run/trainer.h"
#include "support/gradstep_program.h"
#include "support/idx_files.h"
#include "support/recording_sink.h"
#include "support/scratch_dir.h"
#include "support/toys.h"

namespace gradstep::testing {

class SmallRun {
 public:
  explicit SmallRun(int64_t num_train = 9, int64_t num_test = 20) {
    write_idx_dataset(data, num_train, num_test);
    config.dataset = "mnist";
    set("data_dir", data.path());
    set("hidden", "8");
    config.batch_size = 2;
    config.grad_accum_steps = 2;
    config.warmup_steps = 0;
    config.precision = "fp32";
    config.matmul = "torch";
    config.threads = 1;
    config.eval_interval = {};
  }

  // An option of a recipe.
  void set(const std::string& key, const std::string& text) { settings.set(key, text, key); }

  // The job of the settings; `before`: the state that it will go on from.
  [[nodiscard]] Job job(World& world = solo(), const TrainState* before = nullptr) const {
    return make_job(settings, world, configure_process(process_options(settings.config)), before).job;
  }

  // Runs from the beginning into `out`, with the rows in `sink`.
  RunEnd run() {
    std::filesystem::remove_all(out.file("checkpoints"));
    sink.windows.clear();
    sink.evals.clear();
    sink.ends.clear();
    Trainer trainer(job(), solo());
    return trainer.run(sink, stop, posix_file_system(), out.path());
  }
  [[nodiscard]] SafetensorsFile model(const std::string& name = "model.safetensors") const {
    return read_safetensors(out.file(name));
  }
  [[nodiscard]] std::vector<at::Tensor> weights() const { return copies(model().tensors); }
  [[nodiscard]] std::vector<double> losses() const {
    std::vector<double> values;
    for (const WindowRow& row : sink.windows) values.push_back(row.step.loss);
    return values;
  }
  [[nodiscard]] std::vector<double> rates() const {
    std::vector<double> values;
    for (const WindowRow& row : sink.windows) values.push_back(row.step.lr);
    return values;
  }

  ScratchDir data;
  ScratchDir out;
  RunSettings settings{program().catalog};
  RunConfig& config = settings.config;
  RecordingSink sink;
  StopToken stop;
};

}  // namespace gradstep::testing
