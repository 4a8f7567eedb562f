// no torch
// A window is skipped by the engine before anybody is asked; this decides what else happens.
#include "run/trouble.h"

#include <cmath>

namespace gradstep {
bool is_scaler_overflow(const StepReport& report) {
  constexpr double kUnscaled = 1;
  return report.outcome == StepOutcome::kNotFinite && std::isfinite(report.loss) &&
         report.loss_scale > kUnscaled;
}

Reaction reaction_to(const StepReport& report, const TroublePolicy& policy) {
  switch (report.outcome) {
    case StepOutcome::kSpike:
      return policy.on_spike;
    case StepOutcome::kNotFinite:
      return is_scaler_overflow(report) ? Reaction::kGoOn : policy.on_not_finite;
    case StepOutcome::kApplied:
    case StepOutcome::kSteppedOver:
    case StepOutcome::kEmpty:
    case StepOutcome::kGivenUp:
      break;
  }
  return Reaction::kGoOn;
}

}  // namespace gradstep
