// BlackBox: what a run leaves when an update goes wrong: all that is needed to run exactly that update again,
// in one safetensors file. It has no user state (Task::user_state).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradstep/base/step_report.h"
#include "gradstep/checkpoint/model_file.h"
#include "gradstep/data/dataset.h"
#include "gradstep/io/file_system.h"
#include "gradstep/step/engine.h"

namespace gradstep {

struct BlackBox {
  // Which update, and what was wrong with it
  int64_t window = 0;  // from 1
  int64_t update = 0;  // applied before it
  int64_t epoch = 0;
  StepOutcome outcome = StepOutcome::kNotFinite;  // or kSpike
  std::string cause{};                            // in words: kNotFinite, or what the spike detector said
  std::string first_non_finite{};                 // op and parameter; empty for a spike
  std::vector<ModuleNorms> modules{};
  // What went into it
  std::vector<int64_t> ids{};  // samples of the training part, in order, of this rank
  int64_t rank = 0;
  int64_t total_samples = 0;          // over all ranks
  std::optional<double> divisor{};    // StepReport::divisor; older files lack it
  NamedTensors model{};               // parameters and buffers as they were
  std::vector<std::string> frozen{};  // names of the parameters that rested
  EngineState engine{};  // as before the window; the history of the spike detector is not written
  // How it was computed
  double loss = 0;
  double grad_norm = 0;
  double loss_scale = 1;
  int64_t micro_batch = 0;
  Precision precision = Precision::kFp32;
  Matmul matmul = Matmul::kTorch;
  uint64_t seed = 0;
  std::vector<std::pair<int64_t, double>> scale_history{};  // (window, loss scale from there on), newest last
  // What run it was
  ModelInfo info{};
  std::map<std::string, std::string> settings{};  // Setting::key and text
  std::string dataset_fingerprint{};              // of the training part
};

// Of the window that `engine` has just skipped, as `report` says; the model's tensors are live. Examines the
// window where the report has no norms (a spike). The caller adds scale history, info, config and
// fingerprint.
[[nodiscard]] BlackBox make_black_box(Engine& engine, const Window& window, const StepReport& report,
                                      int64_t rank = 0);

// Writes the file atomically. Synchronises the device. Throws CheckpointError.
void write_black_box(FileSystem& file_system, const std::string& path, const BlackBox& box);
// Throws CheckpointError naming file and what is wrong: not a black box, a key that is missing, of another
// type or out of range.
[[nodiscard]] BlackBox read_black_box(const std::string& path);

// Forward and backward of exactly that window, on a model that holds the box's tensors; nothing is trained.
// Throws CheckpointError for ids that the data set does not have. `train` is the training part.
[[nodiscard]] Examination replay(const BlackBox& box, Task task, const Dataset& train);

struct RecordComparison {
  bool same = false;
  std::string text{};  // "same as recorded", or which module differs first and in what
};
[[nodiscard]] RecordComparison compare_with_recorded(const BlackBox& box, const Examination& again);

// Window, cause, scale history, samples, and the table of modules with a mark at the first bad one. Many
// lines, each ended.
[[nodiscard]] std::string format_norm_table(const BlackBox& box);

}  // namespace gradstep
