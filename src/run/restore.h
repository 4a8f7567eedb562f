// Puts a checkpoint's state back into a live engine, and finds the window to go on with.
#pragma once

#include "gradstep/data/sampler.h"
#include "gradstep/run/train_state.h"

namespace gradstep {

// Copies parameters, buffers, moments and averages by name, then counters, scale and micro-batch. Averages
// that the state lacks begin as the restored parameters. Throws CheckpointError naming the tensor that does
// not fit; the engine is unchanged then. `where` begins the message.
void restore_engine(const std::string& where, const TrainState& state, Engine& engine);

// state.next in terms of this sampler: another global batch (accepted drift) goes on behind the samples that
// were consumed, and begins a new epoch where those were all.
[[nodiscard]] Position fit_position(const TrainState& state, const Sampler& sampler);

}  // namespace gradstep
