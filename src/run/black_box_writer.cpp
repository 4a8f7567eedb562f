// Writes one black box for each kind of fault in each start of a run.
#include "run/black_box_writer.h"

#include <exception>
#include <utility>

#include "base/error_text.h"
#include "run/trouble.h"

namespace gradstep {

bool& BlackBoxWriter::left_of_its_kind(const StepReport& step) {
  if (step.outcome == StepOutcome::kSpike) return left_spike_;
  return is_scaler_overflow(step) ? left_overflow_ : left_non_finite_;
}

void BlackBoxWriter::leave(const Window& window, const StepReport& step) {
  if (output_dir_.empty() || std::exchange(left_of_its_kind(step), true)) return;
  std::string number = std::to_string(step.window);
  number.insert(0, number.size() < 8 ? 8 - number.size() : 0, '0');
  const std::string path = output_dir_ + "/blackbox-" + number + ".safetensors";
  try {
    const BlackBox box = run_.black_box(window, step);
    if (!writes_) return;
    write_black_box(file_system_, path, box);
    reporter_.event(step.update, BlackBoxWritten{.window = step.window, .file = path});
  } catch (const std::exception& error) {  // of the disk, or of the task
    reporter_.event(step.update, BlackBoxFailed{.window = step.window, .error = one_line(error)});
  }
}

}  // namespace gradstep
