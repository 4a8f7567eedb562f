// Some models cannot train on a single sample: batch norm over it has no variance.
#pragma once

#include "gradstep/data/loader.h"
#include "gradstep/dist/world.h"
#include "gradstep/run/job.h"

namespace gradstep {

// Where a window, or a micro-batch of it, has one sample on this rank: tries whether the model takes it, and
// throws ConfigError with the numbers if it does not. Else that would show at the end of the first epoch.
void require_single_samples_pass(const Job& job, const Sampler& sampler, const World& world);

}  // namespace gradstep
