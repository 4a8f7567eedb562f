// By name throughout: positions in a list say nothing.
#include "run/restore.h"

#include <torch/torch.h>

#include "gradstep/run/model_file.h"
#include "run/copy_by_name.h"

namespace gradstep {

void restore_engine(const std::string& where, const TrainState& state, Engine& engine) {
  const NamedTensors moments = engine.optimizer().state();
  const NamedTensors averages = engine.ema().tensors();
  const bool has_averages = !averages.empty() && !state.ema.empty();
  check_names(where + " (optimizer)", state.optimizer, moments);
  if (has_averages) check_names(where + " (averages)", state.ema, averages);
  copy_by_name(where + " (model)", state.model, model_tensors(*engine.task().module));
  copy_by_name(where + " (optimizer)", state.optimizer, moments);
  if (has_averages) copy_by_name(where + " (averages)", state.ema, averages);
  if (!has_averages) engine.ema().reset();
  engine.restore(state.engine);
}

Position fit_position(const TrainState& state, const Sampler& sampler) {
  Position next = state.next;
  if (state.global_batch != sampler.global_batch()) {
    const int64_t consumed = next.index * state.global_batch;
    next.index = (consumed + sampler.global_batch() - 1) / sampler.global_batch();
  }
  if (next.index >= sampler.windows_per_epoch()) {
    next.index = 0;
    ++next.epoch;
  }
  return next;
}

}  // namespace gradstep
