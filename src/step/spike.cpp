// no torch
// Mean and deviation are taken anew from the remembered values each time: a running sum would depend on where
// a run was resumed.
#include "gradstep/step/spike.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace gradstep {
namespace {

struct Moments {
  double mean = 0;
  double deviation = 0;
};

// Where values hardly differ, any change is many deviations, so less than this part of the mean is not taken
// for one.
constexpr double kLeastDeviation = 1e-3;

Moments moments(const std::vector<double>& values) {
  Moments result;
  for (const double value : values) result.mean += value;
  const auto count = static_cast<double>(values.size());
  result.mean /= count;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = std::max(std::sqrt(squares / count), kLeastDeviation * std::abs(result.mean));
  return result;
}

std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// Judges `value` by those before it, and adds it to them.
std::string judge(const char* name, double value, const SpikeOptions& options, std::vector<double>& before) {
  if (!std::isfinite(value)) return {};
  std::string finding;
  if (before.size() >= static_cast<size_t>(options.window)) {
    const Moments seen = moments(before);
    if (value > seen.mean + options.z_score * seen.deviation && seen.deviation > 0) {
      finding = std::string(name) + " " + rounded(value) + " is " +
                rounded((value - seen.mean) / seen.deviation) + " deviations above the mean " +
                rounded(seen.mean) + " of " + std::to_string(before.size()) + " windows";
    }
    before.erase(before.begin());
  }
  before.push_back(value);
  return finding;
}

}  // namespace

std::string SpikeDetector::observe(double loss, double grad_norm) {
  if (!enabled() || !std::isfinite(loss) || !std::isfinite(grad_norm)) return {};
  const std::string by_loss = judge("loss", loss, options_, history_.losses);
  const std::string by_norm = judge("gradient norm", grad_norm, options_, history_.grad_norms);
  return by_loss.empty() ? by_norm : by_loss;
}

void SpikeDetector::restore(SpikeHistory history) {
  const auto keep = static_cast<size_t>(options_.window);
  for (std::vector<double>* values : {&history.losses, &history.grad_norms}) {
    if (values->size() > keep) values->erase(values->begin(), values->end() - static_cast<long>(keep));
  }
  history_ = std::move(history);
}

}  // namespace gradstep
