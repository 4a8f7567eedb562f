// no torch
// Works on the times of the rows, so evaluations and saves do not count.
#include "run/speed_watch.h"

#include <algorithm>

#include "report/format.h"

namespace gradstep {
namespace {

constexpr double kBlockSeconds = 1;
constexpr double kMuchSlower = 10;
constexpr double kMuch = 0.3;  // of the time

std::string percent(double share) { return fixed_text(100 * share, 0) + " %"; }

}  // namespace

std::optional<std::string> SpeedWatch::observe(const WindowRow& row) {
  if (told_ || row.step.outcome == StepOutcome::kEmpty) return std::nullopt;
  seconds_ += row.time_data + row.time_step;
  data_seconds_ += row.time_data;
  samples_ += row.step.samples;
  if (seconds_ < kBlockSeconds || samples_ == 0) return std::nullopt;
  const double per_sample = seconds_ / static_cast<double>(samples_);
  const CpuPressure now = pressure_();
  const bool is_slow = fastest_ > 0 && per_sample >= kMuchSlower * fastest_;
  num_slow_ = is_slow ? num_slow_ + 1 : 0;
  std::optional<std::string> found;
  if (num_slow_ == 2) {
    told_ = true;
    found = "the run is " + fixed_text(per_sample / fastest_, 0) + " times slower than it was (" +
            fixed_text(1 / fastest_, 0) + " samples/s, now " + fixed_text(1 / per_sample, 0) +
            "): " + cause(now);
  }
  if (fastest_ == 0 || per_sample < fastest_) fastest_ = per_sample;
  before_ = now;
  seconds_ = data_seconds_ = 0;
  samples_ = 0;
  return found;
}

std::string SpeedWatch::cause(const CpuPressure& now) const {
  if (data_seconds_ > 0.5 * seconds_)
    return "it waits for data " + percent(data_seconds_ / seconds_) +
           " of the time; look at the disk, or give more `workers`";
  // The kernel adds it up over cores.
  const double throttled = std::min(
      (now.throttled_seconds - before_.throttled_seconds) / static_cast<double>(num_cores_), seconds_);
  if (throttled > kMuch * seconds_)
    return "the CPU quota of its cgroup held it up " + percent(throttled / seconds_) +
           " of the time; give it a larger quota, or fewer `threads`";
  // A thread that ends takes its count with it.
  const double preemptions =
      static_cast<double>(std::max<int64_t>(now.preemptions - before_.preemptions, 0)) / seconds_;
  constexpr double kMany = 20;  // a second
  if (now.num_runnable > num_cores_ || preemptions > kMany)
    return "others want its cores: " + std::to_string(now.num_runnable) +
           " threads run or wait on a machine "
           "of which it may use " +
           std::to_string(num_cores_) + (num_cores_ == 1 ? " core" : " cores") +
           ", and its own had to give way " + fixed_text(preemptions, 0) +
           " times a second; free the cores, or resume with fewer `threads`";
  return "the kernel names no cause; look at swap, the clock of the processor and whether it was paused";
}

}  // namespace gradstep
