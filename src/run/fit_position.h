// Which window a run goes on with.
#pragma once

#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/data/loader.h"

namespace gradstep {

// state.next in terms of this sampler. With another global batch (accepted drift) the run goes on after the
// samples that were consumed, and begins a new epoch if those were all.
[[nodiscard]] Position fit_position(const TrainState& state, const Sampler& sampler);

}  // namespace gradstep
