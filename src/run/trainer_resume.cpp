// The ways of a run back to a checkpoint: at its start, and when a window went wrong.
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>

#include "base/number_text.h"
#include "checkpoint/checkpoint_files.h"
#include "checkpoint/finite.h"
#include "checkpoint/model_metadata.h"
#include "dist/over_ranks.h"
#include "gradstep/base/error.h"
#include "gradstep/step/precision.h"
#include "io/atomic_write.h"
#include "io/read_file.h"
#include "report/format.h"
#include "run/drift.h"
#include "run/of_run.h"
#include "run/trainer_impl.h"

namespace gradstep {

void Trainer::Impl::resume(const FoundCheckpoint& found) {
  if (reporter_) throw ConfigError("Trainer::resume: the run has begun already; resume before run()");
  saver_.reset();  // whatever prepare_output() found out was of a new run
  require_same_window(found);
  together([&] { take_over(found); });
}

bool Trainer::Impl::resume_newest(const std::string& output_dir) {
  const std::optional<FoundCheckpoint> found = newest_of_all(output_dir);
  if (found) resume(*found);
  return found.has_value();
}

std::optional<FoundCheckpoint> Trainer::Impl::newest_of_all(const std::string& output_dir) {
  std::optional<FoundCheckpoint> found;
  together([&] { found = newest_checkpoint(output_dir); });
  const double num_found = sum_over_ranks(found ? 1 : 0, setup_.device, setup_.world);
  together([&] {
    if (found || num_found == 0) return;
    throw CheckpointError(output_dir +
                          ": there is no checkpoint here, while another rank has found one; give all ranks "
                          "the same folder");
  });
  return found;
}

void Trainer::Impl::require_same_window(const FoundCheckpoint& found) {
  const int64_t window = found.state.engine.counters.windows;
  const int64_t newest = max_over_ranks(window, setup_.device, setup_.world);
  together([&] {
    if (window == newest) return;
    throw CheckpointError(found.path + " is of window " + std::to_string(window) +
                          ", while another rank has found one of window " + std::to_string(newest) +
                          "; give all ranks the same folder");
  });
}

void Trainer::Impl::take_over(const FoundCheckpoint& found) {
  const TrainState& state = found.state;
  const std::vector<Drift> drifts = find_drift(state, {.settings = setup_.settings,
                                                       .global_batch = setup_.sampler.global_batch(),
                                                       .planned_updates = setup_.planned_updates,
                                                       .dataset_fingerprint = setup_.dataset_fingerprint,
                                                       .eval_fingerprint = setup_.eval_fingerprint,
                                                       .best_metric = setup_.best_metric.name});
  refuse_drift(drifts, found.path, setup_.job.accept_drift);
  const int64_t asked = setup_.job.engine.micro_batch;
  run_.take_over(found.path, state, asked == state.asked_micro_batch ? state.engine.micro_batch : asked);
  follow_schedule(state, drifts);
  resumed_ = state;
  resumed_->model = resumed_->optimizer = resumed_->ema = resumed_->user.tensors = {};
  resumed_from_ = found.path;
  if (setup_.job.engine.precision == state.info.precision && current_matmul() == state.info.matmul)
    setup_.plan.precision_reason = "as before";
  if (!state.user.empty() && !setup_.job.task.restore_user_state)
    warnings_.emplace_back(
        "`resume`: the checkpoint contains user state, but the task has no restore_user_state");
  first_events_.emplace_back(
      Resumed{.from = found.path, .window = state.engine.counters.windows, .nothing_left = nothing_left()});
  for (const std::string& broken : found.broken) {
    warnings_.push_back("a checkpoint is broken and was passed over: " + broken);
    first_events_.emplace_back(BrokenCheckpoint{broken});
  }
  for (const Drift& drift : drifts) {
    const bool accepted = drift.kind == OnResume::kRefused;
    if (drift.kind != OnResume::kFree)
      warnings_.push_back("`resume`: " + describe(drift) + (accepted ? " (accepted)" : ""));
    first_events_.emplace_back(SettingChanged{.key = drift.key, .before = drift.before, .now = drift.now});
  }
}

// A run of another length, with windows of another size or on other data, gets to the end of its schedule
// where it ends.
void Trainer::Impl::follow_schedule(const TrainState& state, const std::vector<Drift>& drifts) {
  const auto refused = [](const Drift& drift) { return drift.kind == OnResume::kRefused; };
  if (std::ranges::none_of(drifts, refused)) return setup_.set_total_updates(state.total_updates);
  const int64_t updates = state.engine.counters.updates;
  LrSchedule before = setup_.engine.options().schedule;
  before.total_steps = state.total_updates;
  const int64_t left = updates_left(setup_.length, run_.next, updates, setup_.sampler.windows_per_epoch());
  if (left == 0) return;
  setup_.set_total_updates(std::max(updates + left, before.warmup_steps));
  const bool has_own_length = setup_.job.engine.schedule.total_steps != 0 || before.function != nullptr;
  if (has_own_length || before.shape == LrShape::kConstant || updates + left == state.total_updates) return;
  warnings_.push_back("`resume`: the learning rate falls over " + thousands_text(updates + left) +
                      " updates now instead of " + thousands_text(state.total_updates) + ": that of update " +
                      thousands_text(updates + 1) + " is " + shortest(setup_.engine.next_lr()) + ", not " +
                      shortest(before.at(updates + 1)));
}

void Trainer::Impl::prepare_output(FileSystem& file_system, const std::string& output_dir) {
  output_dir_ = setup_.plan.output_dir = output_dir;
  is_fork_ = of_rank_zero(resumed_ && !is_of_run(resumed_from_, output_dir));
  // What was read from this very folder need not be written there again.
  changed_ = !resumed_ || is_fork_;
  together([&] {
    if ((!resumed_ || is_fork_) && writes() && !output_dir.empty() && !list_checkpoints(output_dir).empty())
      throw ConfigError(output_dir +
                        ": holds checkpoints of another run, which a new one would mix with its own; "
                        "resume from them, or give another folder");
    saver_ = std::make_unique<RunSaver>(
        file_system, setup_.job.save, setup_.job.length.max_seconds, writes() ? output_dir : "",
        save_bytes(capture_engine(setup_.engine)),
        planned_saves(setup_.job.save.interval, setup_.length, setup_.sampler.windows_per_epoch()));
    if (!changed_) saver_->note_saved(*resumed_);
    output_warnings_ = saver_->check();
  });
  best_is_elsewhere_ = is_fork_ && !output_dir.empty() && run_.best.best();
  if (resumed_ && !is_fork_ && !output_dir.empty()) miss_best();
}

// Whole, of this update, and with numbers for weights.
bool is_sound(const std::string& model_file, int64_t update) {
  if (exported_update(model_file) != update) return false;
  try {
    const ModelFile file = read_model_file(model_file);
    return std::ranges::none_of(file.tensors, [](const auto& each) { return has_nan(each.second); });
  } catch (const CheckpointError&) {
    return false;
  }
}

// A kill came between the first checkpoint of a run that goes on here and its best model files, or somebody
// removed them.
void Trainer::Impl::miss_best() {
  if (!run_.best.best()) return;
  const std::string path = output_dir_ + "/best.safetensors";
  if (!of_rank_zero(!std::filesystem::exists(status_of(path)))) return;
  run_.best.forget();
  output_warnings_.push_back("`resume`: " + path +
                             ", the best so far, is not there: the next evaluation is the best again");
}

void Trainer::Impl::bring_best_along(FileSystem& file_system) {
  best_is_elsewhere_ = false;
  const std::string from = run_of(resumed_from_).string();
  const int64_t update = run_.best.best()->update;
  bool found = false;
  together([&] {
    if (!writes() || !is_sound(from + "/best.safetensors", update)) return;
    found = true;
    for (const char* name : {"best.safetensors", "best-ema.safetensors"}) {
      const std::string source = from + "/" + name;
      if (is_sound(source, update)) atomic_copy(file_system, source, output_dir_ + "/" + name);
    }
  });
  if (of_rank_zero(found)) return;
  run_.best.forget();
  event(Warning{"`resume`: " + from + " has no best.safetensors of update " + std::to_string(update) +
                ", the best so far: the next evaluation is the best again"});
}

void Trainer::Impl::rewind_reports(Sink::Events events) {
  std::string missing;
  reporter_->tell([&](Sink& sinks) { missing = sinks.rewind(run_.report_positions, events); });
  // A checkpoint of another folder knows of rows that are not here.
  if (!missing.empty() && !is_fork_) event(Warning{missing});
}

void Trainer::Impl::roll_back(const StepReport& step, const std::string& cause) {
  saver_->wait();  // what rank 0 wrote is there for all once they agree
  hear_of_saves(/*at_end=*/false);
  look_around();
  const std::string number = std::to_string(step.window);
  if (run_.num_rollbacks >= setup_.job.trouble.max_rollbacks) {
    throw Diverged("diverged at window " + number + " after " + std::to_string(run_.num_rollbacks) +
                   " rollbacks: " + cause + "; lower `lr`, or allow more with `max_rollbacks`");
  }
  together([&] {
    if (!output_dir_.empty()) return;
    throw Diverged("stopped at window " + number + ": " + cause +
                   "; a run without an output folder has no checkpoint to roll back to");
  });
  const std::optional<FoundCheckpoint> found = newest_of_all(output_dir_);
  if (!found) {
    throw Diverged("stopped at window " + number + ": " + cause +
                   "; there is no checkpoint to roll back to yet: give a shorter `save_interval`");
  }
  require_same_window(*found);
  // These outlive the way back.
  std::vector<SteppedOver> stepped_over = std::move(run_.stepped_over);
  stepped_over.push_back({step.window, step.loss, step.grad_norm});
  const int64_t num_rollbacks = run_.num_rollbacks + 1;
  together([&] { run_.take_over(found->path, found->state, setup_.engine.state().micro_batch); });
  run_.stepped_over = std::move(stepped_over);
  run_.num_rollbacks = num_rollbacks;
  best_unsaved_ = false;
  evaluated_at_ = saved_at_ = -1;
  together([&] { loader_ = run_.make_loader(); });  // may get no threads
  rewind_reports(Sink::Events::kKeep);
  for (const std::string& broken : found->broken) event(BrokenCheckpoint{broken});
  event(RolledBack{.window = step.window, .cause = cause, .to = found->path});
}

}  // namespace gradstep
