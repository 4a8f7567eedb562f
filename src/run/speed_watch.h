// SpeedWatch: notices when a run has become much slower than it was, and asks the kernel why.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/machine.h"
#include "gradstep/report/rows.h"

namespace gradstep {

class SpeedWatch {
 public:
  // num_cores: that the process may use. `pressure` is asked once a second at most.
  explicit SpeedWatch(
      int64_t num_cores = num_usable_cores(),
      std::function<CpuPressure()> pressure = [] { return cpu_pressure(); })
      : num_cores_(num_cores), pressure_(std::move(pressure)) {}

  // Takes the next row. Says once what holds the run up: when two seconds in a row, or two windows if they
  // are longer, took ten times as long for their samples as the fastest second so far.
  std::optional<std::string> observe(const WindowRow& row);

 private:
  [[nodiscard]] std::string cause(const CpuPressure& now) const;

  int64_t num_cores_;
  std::function<CpuPressure()> pressure_;
  bool told_ = false;
  double fastest_ = 0;  // seconds a sample, 0: no block yet
  int64_t num_slow_ = 0;
  CpuPressure before_{};  // at the begin of this block
  // Of this block: a second, or a window if that takes longer.
  double seconds_ = 0;
  double data_seconds_ = 0;
  int64_t samples_ = 0;
};

}  // namespace gradstep
