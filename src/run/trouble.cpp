// no torch
// A window is skipped by the engine before anybody is asked; this decides what else happens.
#include "run/trouble.h"

#include <cmath>

namespace gradstep {
namespace {

Reaction parse_reaction(const std::string& text) {
  if (text == "stop") return Reaction::kStop;
  return text == "rollback" ? Reaction::kRollBack : Reaction::kGoOn;
}

}  // namespace

bool is_scaler_overflow(const StepReport& report) {
  constexpr double kUnscaled = 1;
  return report.outcome == StepOutcome::kNotFinite && std::isfinite(report.loss) &&
         report.loss_scale > kUnscaled;
}

Reaction reaction_to(const StepReport& report, const RunConfig& config) {
  switch (report.outcome) {
    case StepOutcome::kSpike:
      return parse_reaction(config.on_spike);
    case StepOutcome::kNotFinite:
      return is_scaler_overflow(report) ? Reaction::kGoOn : parse_reaction(config.on_nonfinite);
    case StepOutcome::kApplied:
    case StepOutcome::kSteppedOver:
    case StepOutcome::kEmpty:
      break;
  }
  return Reaction::kGoOn;
}

}  // namespace gradstep
