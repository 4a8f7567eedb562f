// no torch
// Mean and deviation are taken anew from the remembered values each time: a running sum would depend on where
// a run was resumed.
#include "step/spike.h"

#include <algorithm>
#include <cmath>

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

// Judges `value` by those before it, and adds it to them.
std::optional<SpikeFinding> judge(SpikeFinding::Quantity quantity, double value, const SpikeOptions& options,
                                  std::vector<double>& before) {
  std::optional<SpikeFinding> finding;
  if (before.size() >= static_cast<size_t>(options.window)) {
    const Moments seen = moments(before);
    if (value > seen.mean + options.z_score * seen.deviation && seen.deviation > 0) {
      finding = SpikeFinding{.quantity = quantity,
                             .value = value,
                             .z_score = (value - seen.mean) / seen.deviation,
                             .mean = seen.mean,
                             .num_windows = static_cast<int64_t>(before.size())};
    }
    before.erase(before.begin());
  }
  before.push_back(value);
  return finding;
}

}  // namespace

std::optional<SpikeFinding> SpikeDetector::observe(double loss, double grad_norm) {
  if (!enabled() || !std::isfinite(loss) || !std::isfinite(grad_norm)) return {};
  const auto by_loss = judge(SpikeFinding::Quantity::kLoss, loss, options_, history_.losses);
  const auto by_norm = judge(SpikeFinding::Quantity::kGradNorm, grad_norm, options_, history_.grad_norms);
  return by_loss ? by_loss : by_norm;
}

void SpikeDetector::restore(SpikeHistory history) {
  const auto keep = static_cast<size_t>(options_.window);
  for (std::vector<double>* values : {&history.losses, &history.grad_norms}) {
    if (values->size() > keep) values->erase(values->begin(), values->end() - static_cast<long>(keep));
  }
  history_ = std::move(history);
}

}  // namespace gradstep
