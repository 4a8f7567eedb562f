// SpikeDetector: is this loss or gradient norm an outlier against those of the windows before it?
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gradstep/base/step_report.h"
#include "gradstep/step/engine.h"

namespace gradstep {

class SpikeDetector {
 public:
  explicit SpikeDetector(const SpikeOptions& options) : options_(options) {}

  [[nodiscard]] bool enabled() const { return options_.z_score > 0; }
  // Judges the two values and remembers them, spikes included, so that it learns a new level. Returns what
  // is odd, the loss first; nothing if neither is. Values that are not finite are neither judged nor
  // remembered. Sums are taken in order, so equal histories give equal answers.
  [[nodiscard]] std::optional<SpikeFinding> observe(double loss, double grad_norm);

  [[nodiscard]] const SpikeHistory& history() const { return history_; }
  // REQUIRES: as many losses as norms. Values beyond the window are dropped, oldest first.
  void restore(SpikeHistory history);

 private:
  SpikeOptions options_;
  SpikeHistory history_;
};

}  // namespace gradstep
