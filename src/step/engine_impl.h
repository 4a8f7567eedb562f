// What an engine is made of. engine.cpp has the update, engine_passes.cpp the passes of a window,
// second_look.cpp the examination of a bad window.
#pragma once

#include <torch/torch.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/grad_sync.h"
#include "gradstep/step/engine.h"
#include "step/accumulator.h"
#include "step/ema.h"
#include "step/engine_setup.h"
#include "step/grad_scaler.h"
#include "step/spike.h"
#include "step/state_layout.h"
#include "step/task_snapshot.h"

namespace gradstep {

// How the passes of a window went on this rank. Unless they are complete no gradient is left.
struct Passes {
  SyncStatus status = SyncStatus::kComplete;
  std::vector<at::Tensor> loss_sums{};  // one a micro-batch
  std::exception_ptr error{};           // where they failed
};

struct Engine::Impl {
  Impl(Task task, const EngineOptions& options, World& world);

  StepReport step(const Window& window, const GiveUp& give_up);
  StepReport pass_by(const Window& window, StepReport report, StepOutcome outcome);
  Examination examine(const Window& window, double loss_scale, double divisor);
  Examination examine_as(const Window& window, double loss_scale, double divisor);
  Examination look_together(const Window& window, const StepReport& report);

  StepReport begin_report(const Window& window);
  void end_report(StepReport& report);  // consumes the window
  [[nodiscard]] int64_t micro_batch_for(const Window& window) const;
  Passes accumulate(const Window& window, double factor, GradSync* sync, const GiveUp& give_up);
  SyncStatus reduce(Passes& passes);
  Passes make_gradients(const Window& window, const GiveUp& give_up, StepReport& report);
  StepReport give_up_on(const Window& window, StepReport report, int64_t micro_batch_before);
  void shrink_micro_batch(const Window& window, const Passes& passes, StepReport& report);
  void judge(const Passes& passes, StepReport& report);
  void read_back(const Passes& passes, StepReport& report);
  std::optional<double> share_loss(double own, bool failed);
  void note_update();
  void note_skip(const Window& window, StepReport& report);
  void zero_grad();
  void require_same_user_state();
  void save_task();
  void restore_task();
  void drop();  // a window half done: no gradients, buffers and user state as before

  Task task;
  EngineOptions options;  // as given, but for the length of the schedule
  World& world;
  EngineParameters parameters;
  Optimizer& optimizer;
  const StateLayout state_layout;
  at::Device device;
  Accumulator accumulator;
  std::unique_ptr<GradSync> grad_sync;
  GradScaler scaler;
  TaskSnapshot snapshot;  // from before the window
  EmaWeights ema;
  SpikeDetector spikes;
  EngineCounters counters;
  int64_t micro_batch;  // in use: less than was asked for once memory ran out
  bool is_whole = true;
  bool has_stepped = false;      // of this object, whatever a checkpoint counts
  bool owes_loss = false;        // the other ranks wait for this one's loss
  double host_scale;             // mirror of the scaler's scale
  std::string first_non_finite;  // of the current row of skips
  int64_t non_finite_rank = 0;   // where it was seen
  at::Tensor norm;               // 0-dim fp32: of this update
  at::Tensor found_inf;          // 0-dim fp32: 1 when this update is skipped
};

}  // namespace gradstep
