// Writes one black box for each kind of fault in each start of a run.
#include "run/black_box_writer.h"

#include <cstring>
#include <exception>
#include <utility>

#include "base/error_text.h"
#include "dist/over_ranks.h"
#include "dist/together.h"
#include "run/trouble.h"
#include "step/second_look.h"

namespace gradstep {

bool& BlackBoxWriter::left_of_its_kind(const StepReport& step) {
  if (step.outcome == StepOutcome::kSpike) return left_spike_;
  return is_scaler_overflow(step) ? left_overflow_ : left_non_finite_;
}

// That of the rank whose samples are to blame, on all ranks.
BlackBox BlackBoxWriter::box_of_all(const Window& window, const StepReport& step) {
  World& world = run_.setup.world;
  const c10::Device device = run_.setup.device;
  BlackBox box;
  together([&] { box = run_.black_box(window, step); }, device, world);
  if (step.modules.empty()) {  // each rank has looked for itself
    Examination seen = share_examination({box.first_non_finite, box.modules}, device, world);
    box.first_non_finite = std::move(seen.first_non_finite);
    box.modules = std::move(seen.modules);
    box.rank = seen.rank;
  } else {
    box.rank = step.non_finite_rank;
  }
  std::string bytes(reinterpret_cast<const char*>(box.ids.data()), box.ids.size() * sizeof(int64_t));
  bytes = broadcast_bytes(std::move(bytes), box.rank, device, world);
  box.ids.resize(bytes.size() / sizeof(int64_t));
  std::memcpy(box.ids.data(), bytes.data(), bytes.size());
  return box;
}

void BlackBoxWriter::leave(const Window& window, const StepReport& step) {
  if (output_dir_.empty() || std::exchange(left_of_its_kind(step), true)) return;
  std::string number = std::to_string(step.window);
  number.insert(0, number.size() < 8 ? 8 - number.size() : 0, '0');
  const std::string path = output_dir_ + "/blackbox-" + number + ".safetensors";
  const auto failed = [&](const std::exception& error) {
    reporter_.event(step.update, BlackBoxFailed{.window = step.window, .error = one_line(error)});
  };
  BlackBox box;
  try {
    box = box_of_all(window, step);
  } catch (const std::exception& error) {  // on all ranks
    const RunSetup& setup = run_.setup;
    const bool is_torn = max_over_ranks(setup.engine.is_whole() ? 0 : 1, setup.device, setup.world) > 0;
    if (is_torn) throw;  // on one of them the look changed what could not be taken back
    return failed(error);
  }
  if (!writes_) return;
  try {
    write_black_box(file_system_, path, box);
    reporter_.event(step.update, BlackBoxWritten{.window = step.window, .file = path});
  } catch (const std::exception& error) {  // of the disk
    failed(error);
  }
}

}  // namespace gradstep
