// Policy around the Checkpointer.
#include "run/run_saver.h"

#include "gradstep/base/error.h"
#include "report/format.h"
#include "run/disk_room.h"

namespace gradstep {

RunSaver::RunSaver(FileSystem& file_system, const RunConfig& config, const std::string& output_dir,
                   int64_t checkpoint_bytes)
    : file_system_(file_system),
      config_(config),
      output_dir_(output_dir),
      checkpoint_bytes_(checkpoint_bytes) {
  if (output_dir_.empty()) return;
  checkpointer_.emplace(file_system_,
                        CheckpointerOptions{.output_dir = output_dir_, .keep = config.keep_checkpoints});
}

RunSaver::Key RunSaver::key_of(const TrainState& state) {
  return {state.engine.counters.updates, state.engine.counters.windows,
          state.last_eval ? state.last_eval->update : -1};
}

void RunSaver::save(const TrainState& state, const SaveRequest& request) {
  if (!enabled()) return;
  checkpointer_->save(state, request);
  saved_ = key_of(state);
}

void RunSaver::wait() {
  if (enabled()) checkpointer_->wait();
}

void RunSaver::report(Sink& sinks, bool at_end) {
  if (!enabled()) return;
  if (at_end) checkpointer_->wait();
  for (const SaveOutcome& outcome : checkpointer_->outcomes()) {
    if (outcome.error.empty()) continue;
    if (saved_.update == outcome.update) saved_ = {};
    sinks.event(
        {.name = "checkpoint failed", .update = outcome.update, .fields = {{"error", outcome.error}}});
    if (at_end || config_.on_save_error == "stop") throw CheckpointError(outcome.error);
  }
}

std::vector<std::string> RunSaver::check() { return {}; }

double RunSaver::expected_seconds() const {
  if (enabled()) {
    if (const std::optional<double> measured = checkpointer_->save_seconds()) return *measured;
  }
  return estimated_seconds_.value_or(0);
}

}  // namespace gradstep
