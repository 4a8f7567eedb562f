// How a run reacts to a window that went wrong. Pure.
#pragma once

#include "gradstep/base/step_report.h"
#include "gradstep/run/job.h"

namespace gradstep {

// By the policy. An overflow of scaled fp16 gradients under a finite loss is the scaler's
// daily work and always passes.
[[nodiscard]] Reaction reaction_to(const StepReport& report, const TroublePolicy& policy);

// Whether it is such an overflow.
[[nodiscard]] bool is_scaler_overflow(const StepReport& report);

}  // namespace gradstep
