// no torch
// Counts in samples, which mean the same under both batch sizes.
#include "run/fit_position.h"

namespace gradstep {

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
