// RowClock: where the wall time of a run goes, row by row.
#pragma once

#include <chrono>

#include "gradstep/report/sinks.h"

namespace gradstep {

class RowClock {
 public:
  using Clock = std::chrono::steady_clock;

  // Time from its making to its end belongs to no row: evaluation, saving.
  class Pause {
   public:
    explicit Pause(RowClock& clock) : clock_(clock), begin_(Clock::now()) {}
    ~Pause() { clock_.last_row_ += Clock::now() - begin_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;
    [[nodiscard]] double seconds() const { return to_seconds(Clock::now() - begin_); }

   private:
    RowClock& clock_;
    Clock::time_point begin_;
  };

  // seconds_before: of training in earlier starts of this run.
  void start(double seconds_before) {
    begin_ = last_row_ = data_ready_ = Clock::now();
    seconds_before_ = seconds_before;
  }
  void data_ready() { data_ready_ = Clock::now(); }
  // Fills time_data, time_step, samples_per_s and memory of a row whose step has just ended.
  void finish_row(WindowRow& row);
  [[nodiscard]] Pause pause() { return Pause(*this); }
  // Of training, earlier starts included.
  [[nodiscard]] double seconds() const { return seconds_before_ + to_seconds(Clock::now() - begin_); }

 private:
  static double to_seconds(Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
  }
  Clock::time_point begin_{}, last_row_{}, data_ready_{}, memory_read_{};
  double seconds_before_ = 0;
  int64_t memory_ = 0;
};

}  // namespace gradstep
