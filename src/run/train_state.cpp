// Between a live engine and a state: by name throughout, since positions in a list say nothing.
#include "gradstep/run/train_state.h"

#include <torch/torch.h>

#include "gradstep/run/model_file.h"
#include "run/copy_by_name.h"

namespace gradstep {

TrainState capture_engine(Engine& engine) {
  TrainState state;
  state.model = model_tensors(*engine.task().module);
  state.optimizer = engine.optimizer().state();
  state.ema = engine.ema().tensors();
  state.engine = engine.state();
  return state;
}

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

}  // namespace gradstep
