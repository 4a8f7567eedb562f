// BlackBoxWriter: writes a black box of the first skipped window of each kind.
#pragma once

#include <string>

#include "gradstep/io/file_system.h"
#include "run/reporter.h"
#include "run/run_progress.h"

namespace gradstep {

class BlackBoxWriter {
 public:
  // All of them must outlive it. An empty output_dir: none is left. All ranks look at the window together;
  // the one that `writes` writes the file, with the samples of the rank where the fault is.
  BlackBoxWriter(FileSystem& file_system, const std::string& output_dir, bool writes, const RunProgress& run,
                 Reporter& reporter)
      : file_system_(file_system), output_dir_(output_dir), writes_(writes), run_(run), reporter_(reporter) {}

  // The first scaler's overflow, the first spike and the first window beside these that is not finite have
  // one each, <output_dir>/blackbox-<window>.safetensors. One that cannot be made or written is told, and the
  // run goes on: it does not end because its recorder fails.
  void leave(const Window& window, const StepReport& step);

 private:
  BlackBox box_of_all(const Window& window, const StepReport& step);
  bool& left_of_its_kind(const StepReport& step);

  FileSystem& file_system_;
  const std::string output_dir_;
  const bool writes_;
  const RunProgress& run_;
  Reporter& reporter_;
  bool left_overflow_ = false;
  bool left_spike_ = false;
  bool left_non_finite_ = false;
};

}  // namespace gradstep
