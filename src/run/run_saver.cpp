// Policy around the Checkpointer.
#include "run/run_saver.h"

#include <system_error>

#include "gradstep/base/error.h"
#include "report/format.h"

namespace gradstep {
namespace {

// Times below a second in milliseconds.
std::string short_time_text(double seconds) {
  return seconds < 1 ? fixed_text(1000 * seconds, seconds < 0.1 ? 1 : 0) + " ms" : seconds_text(seconds);
}

}  // namespace

RunSaver::RunSaver(FileSystem& file_system, const SavePolicy& policy, double max_seconds,
                   const std::string& output_dir, const SaveBytes& bytes, int64_t num_saves)
    : file_system_(file_system),
      policy_(policy),
      max_seconds_(max_seconds),
      output_dir_(output_dir),
      bytes_(bytes),
      num_saves_(num_saves) {
  if (output_dir_.empty()) return;
  checkpointer_.emplace(file_system_, CheckpointerOptions{.output_dir = output_dir_, .keep = policy.keep});
}

std::vector<std::string> RunSaver::check() {
  std::vector<std::string> warnings;
  if (!enabled()) return warnings;
  const std::string room = check_room(file_system_, output_dir_, bytes_, policy_.keep, num_saves_);
  require_writable(file_system_, output_dir_);
  if (!room.empty()) warnings.push_back(room);
  if (policy_.grace_seconds == 0 && max_seconds_ == 0) return warnings;
  const uint64_t bytes = bytes_of_save(bytes_, {});
  const double bytes_per_second = measure_write_rate(file_system_, place_of_checkpoints(output_dir_), bytes);
  if (bytes_per_second > 0) estimated_seconds_ = static_cast<double>(bytes) / bytes_per_second;
  const double seconds = expected_seconds();
  const std::string takes =
      " is too short: a save of " + room_text(bytes) + " takes about " + short_time_text(seconds) + " here";
  // A signal may come right after a save has begun.
  if (policy_.grace_seconds > 0 && 2 * seconds > policy_.grace_seconds) {
    warnings.push_back("`grace` " + short_time_text(policy_.grace_seconds) + takes +
                       ", and one may be under way; ask the scheduler for more");
  }
  if (max_seconds_ > 0 && 1.5 * seconds > max_seconds_)
    warnings.push_back("`max_time`" + takes + "; allow more");
  return warnings;
}

void RunSaver::note_saved(const TrainState& state) {
  if (enabled()) checkpointer_->note_saved(state);
}

void RunSaver::save(const TrainState& state, const SaveRequest& request) {
  if (enabled()) checkpointer_->save(state, request);
}

void RunSaver::wait() {
  if (enabled()) checkpointer_->wait();
}

void RunSaver::report(Sink& sinks, bool at_end) {
  if (!enabled()) return;
  if (at_end) checkpointer_->wait();
  for (const SaveOutcome& outcome : checkpointer_->outcomes()) {
    last_error_ = outcome.error;
    if (outcome.error.empty()) continue;
    if (outcome.best) lost_best_ = outcome.update;
    sinks.event({.update = outcome.update, .event = SaveFailed{.error = outcome.error}});
    if (failure_) continue;
    if (outcome.diverged) {
      failure_ = std::make_exception_ptr(Diverged(outcome.error));
    } else if (!policy_.continue_on_error) {
      failure_ = std::make_exception_ptr(CheckpointError(outcome.error));
    }
  }
  if (at_end && !failure_ && !last_error_.empty())
    failure_ = std::make_exception_ptr(CheckpointError(last_error_));
}

void RunSaver::throw_failure() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

double RunSaver::expected_seconds() const {
  if (enabled()) {
    if (const std::optional<double> measured = checkpointer_->save_seconds()) return *measured;
  }
  return estimated_seconds_.value_or(0);
}

}  // namespace gradstep
