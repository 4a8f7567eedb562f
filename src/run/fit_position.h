// Which window a run goes on with.
#pragma once

#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/data/loader.h"

namespace gradstep {

// state.next in terms of this sampler: another global batch (accepted drift) goes on behind the samples that
// were consumed, and begins a new epoch where those were all.
[[nodiscard]] Position fit_position(const TrainState& state, const Sampler& sampler);

}  // namespace gradstep
