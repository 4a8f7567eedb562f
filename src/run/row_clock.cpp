// no torch
// The resident set is read ten times a second at most: for short windows the system calls would show.
#include "run/row_clock.h"

#include "base/machine.h"

namespace gradstep {

void RowClock::finish_row(WindowRow& row) {
  const Clock::time_point now = Clock::now();
  row.time_data = to_seconds(data_ready_ - last_row_);
  row.time_step = to_seconds(now - data_ready_);
  const double wall = to_seconds(now - last_row_);
  row.samples_per_s = wall > 0 ? static_cast<double>(row.step.samples) / wall : 0;
  if (now - memory_read_ > std::chrono::milliseconds(100)) {
    memory_ = resident_bytes();
    memory_read_ = now;
  }
  row.memory = memory_;
  last_row_ = now;
}

}  // namespace gradstep
