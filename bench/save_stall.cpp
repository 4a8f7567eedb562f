// What a save costs a run: the wait in Checkpointer::save, the time until it is durable (with the run
// waiting, and with updates going on meanwhile), and how much slower those updates are. Flags: --threads,
// --hidden,
// --saves, --dir (a folder that is there; the checkpoints stay in it).
#include <torch/torch.h>

#include <algorithm>
#include <vector>

#include "base/allocator.h"
#include "bench_common.h"
#include "gradstep/checkpoint/checkpointer.h"
#include "gradstep/io/file_system.h"
#include "gradstep/step/engine.h"
#include "model/mlp.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kBatch = 32;
constexpr int kUpdatesBetween = 5;

// An MLP on noise, with AdamW: parameters and two moments of each are the state.
class Loop {
 public:
  explicit Loop(int64_t hidden)
      : info_{.settings = {{"model", "mlp"}, {"hidden", std::to_string(hidden)}}},
        inputs_(at::randint(256, {kBatch, 784}, at::kByte)),
        targets_(at::randint(10, {kBatch}, at::kLong)),
        engine_(gradstep::mlp_task({.hidden = hidden}),
                {.schedule = {.shape = gradstep::LrShape::kConstant}, .micro_batch = kBatch}, world_) {}

  // Seconds of one update.
  double update() {
    const auto start = Clock::now();
    engine_.step(inputs_, targets_);
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  gradstep::TrainState state() {
    gradstep::TrainState state = gradstep::capture_engine(engine_);
    state.info = info_;
    return state;
  }

 private:
  gradstep::ModelInfo info_;
  gradstep::SoloWorld world_;
  at::Tensor inputs_, targets_;
  gradstep::Engine engine_;
};

std::string list_text(const std::vector<double>& values) {
  std::string text;
  for (const double value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return "[" + text + "]";
}

gradstep::SaveOutcome ended(gradstep::Checkpointer& checkpointer) {
  checkpointer.wait();
  const gradstep::SaveOutcome outcome = checkpointer.outcomes().at(0);
  if (!outcome.error.empty()) throw std::runtime_error(outcome.error);
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Flags flags(argc, argv);
  gradstep::keep_freed_memory();  // as the program does
  at::set_num_threads(static_cast<int>(flags.count("threads", 2)));
  Loop loop(flags.count("hidden", 10486));
  gradstep::Checkpointer checkpointer(gradstep::posix_file_system(),
                                      {.output_dir = flags.text("dir", "."), .keep = 1});
  loop.update();
  checkpointer.save(loop.state());
  const gradstep::SaveOutcome first = ended(checkpointer);
  std::vector<double> stalls, waiting, beside, updates, updates_beside;
  for (int64_t i = 0; i < flags.count("saves", 5); ++i) {
    for (int k = 0; k < kUpdatesBetween; ++k) updates.push_back(loop.update());
    checkpointer.save(loop.state());
    gradstep::SaveOutcome outcome = ended(checkpointer);
    stalls.push_back(outcome.stall_seconds);
    waiting.push_back(outcome.seconds);
    for (int k = 0; k < kUpdatesBetween; ++k) updates.push_back(loop.update());
    checkpointer.save(loop.state());
    while (checkpointer.in_flight()) updates_beside.push_back(loop.update());
    outcome = ended(checkpointer);
    stalls.push_back(outcome.stall_seconds);
    beside.push_back(outcome.seconds);
  }
  std::printf(
      "{\"name\": \"save_stall\", \"bytes\": %llu, \"first_stall_s\": %.6f, \"stall_s\": %s, \"durable_s\": "
      "%s, \"durable_beside_updates_s\": %s, \"update_s\": %s, \"update_beside_save_s\": %s}\n",
      static_cast<unsigned long long>(first.bytes), first.stall_seconds, list_text(stalls).c_str(),
      list_text(waiting).c_str(), list_text(beside).c_str(), list_text(updates).c_str(),
      list_text(updates_beside).c_str());
}
