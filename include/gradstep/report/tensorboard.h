// TensorBoardSink: the rows of a run as curves in TensorBoard.
#pragma once

#include <memory>
#include <string>

#include "gradstep/report/sink.h"

namespace gradstep {

/// Writes event files. Steps are updates:
///
/// - `train/loss`, `train/lr`, `train/grad_norm`, `perf/samples_per_s` for each update; `train/loss_scale`
///   unless it is 1. A skipped window makes no update and adds no point.
/// - `val/loss`, `val/<metric>` for each evaluation, `val_ema/...` for the averaged weights.
/// - `settings` and `plan` as texts.
///
/// Each start writes a new file into the same folder and tells TensorBoard to drop later points, so that a
/// run that was killed and resumed, or went back, shows each update once. Give it to
/// SinkList::add_best_effort, so that a disk that hangs does not hold up the run.
class TensorBoardSink final : public Sink {
 public:
  /// The folder is created with the first row, inside the run's folder as a rule. All calls throw
  /// std::system_error with the path if it cannot be written.
  explicit TensorBoardSink(std::string folder);
  ~TensorBoardSink() override;
  void begin(const RunStart& start) override;
  void window(const WindowRow& row) override;
  void eval(const EvalRow& row) override;
  void event(const EventRow& row) override;
  void end(const RunEnd& row) override;
  void flush() override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradstep
