// no torch
// The words for a spike in rows, events and black boxes.
#include "gradstep/base/step_report.h"

#include <cstdio>

namespace gradstep {
namespace {

std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

std::string to_string(const SpikeFinding& spike) {
  const char* quantity = spike.quantity == SpikeFinding::Quantity::kLoss ? "loss " : "gradient norm ";
  return quantity + rounded(spike.value) + " is " + rounded(spike.z_score) + " deviations above the mean " +
         rounded(spike.mean) + " of " + std::to_string(spike.num_windows) + " windows";
}

}  // namespace gradstep
