// no torch
// A window is skipped by the engine before anybody is asked; this decides what else happens.
#include "run/trouble.h"

#include <cmath>

namespace gradstep {
bool is_scaler_overflow(const StepReport& report) {
  constexpr double kUnscaled = 1;
  return report.skipped && report.spike.empty() && std::isfinite(report.loss) &&
         report.loss_scale > kUnscaled;
}

Reaction reaction_to(const StepReport& report, const TroublePolicy& policy) {
  if (!report.skipped) return Reaction::kGoOn;
  if (!report.spike.empty()) return policy.on_spike;
  return is_scaler_overflow(report) ? Reaction::kGoOn : policy.on_not_finite;
}

}  // namespace gradstep
