// The trial of `threads` auto: how many threads compute this very model fastest, beside whatever else wants
// the cores?
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "gradstep/data/dataset.h"
#include "gradstep/model/task.h"
#include "gradstep/step/precision.h"
#include "step/trial_guard.h"

namespace gradstep {

// Seconds: that go by, and that the calling thread computes. A test passes its own.
struct TrialClock {
  std::function<double()> wall = steady_seconds;
  std::function<double()> cpu = thread_cpu_seconds;
};

struct ThreadsChoice {
  int64_t threads = 1;
  std::string reason{};  // one line; empty: there was no choice
};

// 1 thread, or 2, 4 and so on up to as many as LibTorch has where that is clearly faster; where others want
// the cores, too, much faster. Each number computes `micro` (on any device) for blocks of 30 ms, in turn,
// until the fastest is beyond doubt, or for about a second; longer only where single passes are. Leaves the
// number, gradients, buffers, modes and generators as they are. check_stop, unless empty, is called before
// each block; what it throws ends the trial.
[[nodiscard]] ThreadsChoice choose_threads(const Task& task, const Batch& micro, Precision precision,
                                           Matmul matmul, const std::function<void()>& check_stop = {},
                                           const TrialClock& clock = {});

}  // namespace gradstep
