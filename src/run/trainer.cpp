// The loop of a run. It evaluates, saves and decides between two windows, never within one.
#include "gradstep/run/trainer.h"

#include <torch/torch.h>

#include <chrono>
#include <utility>

#include "base/error_text.h"
#include "base/exit_code_of.h"
#include "checkpoint/model_metadata.h"
#include "dist/over_ranks.h"
#include "gradstep/base/error.h"
#include "gradstep/run/evaluator.h"
#include "report/format.h"
#include "run/trainer_impl.h"
#include "run/trouble.h"
#include "step/ema.h"

namespace gradstep {

RunEnd Trainer::Impl::run(Sink& sinks, const StopToken& stop, FileSystem& file_system,
                          const std::string& output_dir) {
  if (reporter_) throw ConfigError("Trainer::run: the run has begun already; make another Trainer to go on");
  reporter_.emplace(sinks, writes());
  stop_ = &stop;
  if (!saver_ || output_dir_ != output_dir) prepare_output(file_system, output_dir);
  boxes_.emplace(file_system, output_dir, writes(), run_, *reporter_);
  try {
    begin();
    // After the first checkpoint: a folder with a best model and no checkpoint would be nobody's.
    if (best_is_elsewhere_) {
      saver_->wait();
      bring_best_along(file_system);
    }
    while (!over()) {
      if (eval_due()) {
        evaluate_now();
      } else if (save_due()) {
        save(/*export_model=*/false, setup_.world);
      } else {
        consume(next());
      }
    }
    return finish();
  } catch (const Diverged&) {
    tell_failure();
    throw;
  } catch (...) {
    save_after_error();
    tell_failure();
    throw;
  }
}

void Trainer::Impl::begin() {
  first_update_ = setup_.engine.counters().updates;
  together([&] { loader_ = run_.make_loader(); });  // may get no threads
  reporter_->tell([&](Sink& sinks) { sinks.begin(setup_.run_start(resumed_from_)); });
  rewind_reports(Sink::Events::kDrop);
  for (const Event& first : first_events_) event(first);
  for (const std::string& warning : output_warnings_) event(Warning{warning});
  facts_.seconds = resumed_ ? resumed_->seconds : 0;
  clock_.start(facts_.seconds);
  // Killed before the next one, it goes on from here.
  if (is_fork_) save(/*export_model=*/false, setup_.world);
}

// The last row of a run that failed, so that readers can tell it from one that goes on. Called while the
// exception is handled.
void Trainer::Impl::tell_failure() {
  const std::exception_ptr failure = std::current_exception();
  RunFailed row{.code = static_cast<int64_t>(exit_code_of(failure))};
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    row.error = one_line(error);
  } catch (...) {
    row.error = "an exception of an unknown kind";
  }
  event(std::move(row));
  reporter_->tell([](Sink& sinks) { sinks.flush(); });
}

void Trainer::Impl::hear_of_saves(bool at_end) {
  reporter_->tell([&](Sink& sinks) { saver_->report(sinks, at_end); });
  reporter_->pass_on_warnings(setup_.engine.counters().updates);
}

bool Trainer::Impl::over() {
  hear_of_saves(/*at_end=*/false);
  fetch();
  look_around();
  // What is due at the last window is done before the run ends.
  if (eval_due() || save_due()) return false;
  return nothing_left() || facts_.stop || start_is_over() || facts_.time_is_over;
}

// An evaluation that a stop cut short is made at this very window after going on, not twice in one start.
bool Trainer::Impl::eval_due() const {
  return !facts_.stop && run_.samples > 0 && evaluated_at_ != num_windows() && run_.evals.due(elapsed());
}

bool Trainer::Impl::save_due() const {
  return best_unsaved_ || (run_.samples > 0 && saved_at_ != num_windows() && run_.saves.due(elapsed()));
}

void Trainer::Impl::fetch() {
  if (own_failure_ || window_ || eval_due() || save_due() || nothing_left() || start_is_over() ||
      stop_->requested())
    return;
  try {
    window_ = loader_->next();
  } catch (...) {
    own_failure_ = std::current_exception();
  }
}

// What fetch() brought: over() is true where it brings nothing.
Window Trainer::Impl::next() {
  TORCH_CHECK(window_, "the run goes on, and there is no window");
  return *std::exchange(window_, std::nullopt);
}

void Trainer::Impl::look_around() {
  facts_ = agree({.seconds = clock_.seconds(),
                  .time_is_over = time_is_over(),
                  .stop = stop_->requested() ? std::optional(stop_->reason()) : std::nullopt,
                  .lost_best = saver_->take_lost_best(),
                  .failed = saver_->has_failed() || !reporter_->is_whole() || own_failure_ != nullptr},
                 setup_.device, setup_.world);
  // Its weights are gone: the next evaluation is the best again.
  if (facts_.lost_best) run_.best.forget(*facts_.lost_best);
  if (!facts_.failed) return;
  together([&] {
    reporter_->throw_failure();
    saver_->throw_failure();
    if (own_failure_) std::rethrow_exception(own_failure_);
  });
}

void Trainer::Impl::consume(const Window& window) {
  clock_.data_ready();
  const SteppedOver* known = run_.stepped_over_at(setup_.engine.counters().windows + 1);
  WindowRow row;
  try {
    row.step = known ? setup_.engine.step_over(window) : setup_.engine.step(window, give_up());
  } catch (...) {  // perhaps on this rank alone
    changed_ = true;
    own_failure_ = std::current_exception();
    return;
  }
  if (row.step.outcome == StepOutcome::kGivenUp) {
    window_ = window;  // of the next start
    event(
        Warning{"window " + std::to_string(num_windows() + 1) +
                " was given up, since the rest of it and a save would take longer than the grace of a stop; "
                "the next start makes it again"});
    return;
  }
  changed_ = true;
  if (known) {
    row.step.loss = known->loss;
    row.step.grad_norm = known->grad_norm;
  }
  run_.advance(row.step, loader_->position());
  row.window_of_epoch = window.position.index + 1;
  row.samples = run_.samples;
  clock_.finish_row(row);
  window_seconds_ = std::max(0.9 * window_seconds_, row.time_data + row.time_step);
  reporter_->tell([&](Sink& sinks) { sinks.window(row); });
  if (known) return;
  if (std::optional<std::string> slow = speed_watch_.observe(row))
    event(SlowedDown{.window = row.step.window, .what = *std::move(slow)});
  warn_of_short_grace(row);
  refuse_empty_epoch(row.step);
  react(window, row.step);
}

GiveUp Trainer::Impl::give_up() const {
  constexpr double kUsualGrace = 30;  // of Kubernetes and Slurm
  const double given = setup_.job.save.grace_seconds;
  return [this, grace = given > 0 ? given : kUsualGrace, begin = RowClock::Clock::now()](
             int64_t done, int64_t total) mutable {
    if (done == 0) begin = RowClock::Clock::now();  // once more where memory ran out
    if (!stop_->requested()) return false;
    const double passed = std::chrono::duration<double>(RowClock::Clock::now() - begin).count();
    const double each =
        done > 0 ? passed / static_cast<double>(done) : window_seconds_ / static_cast<double>(total);
    const double rest = each * static_cast<double>(total - done);
    return stop_->seconds_since() + rest + 2 * saver_->expected_seconds() > grace;
  };
}

// Between two micro-batches a window can be given up; within one it cannot.
void Trainer::Impl::warn_of_short_grace(const WindowRow& row) {
  const double grace = setup_.job.save.grace_seconds;
  if (grace_checked_ || grace == 0 || row.step.num_micro_batches == 0) return;
  grace_checked_ = true;
  const double micro_batch = row.time_step / static_cast<double>(row.step.num_micro_batches);
  if (micro_batch + 2 * saver_->expected_seconds() <= grace) return;
  event(Warning{"`grace` " + seconds_text(grace) + " is too short: a micro-batch takes about " +
                seconds_text(micro_batch) +
                ", and a save comes after it; give a smaller `batch_size`, or ask "
                "the scheduler for more"});
}

// A run that counts updates would never end.
void Trainer::Impl::refuse_empty_epoch(const StepReport& step) {
  empty_in_a_row_ = step.outcome == StepOutcome::kEmpty ? empty_in_a_row_ + 1 : 0;
  if (empty_in_a_row_ < setup_.sampler.windows_per_epoch()) return;
  // An order of one's own may have shorter epochs than the data.
  if (empty_in_a_row_ * setup_.sampler.global_batch() < setup_.job.data.train->size()) return;
  throw DataError("data set " + setup_.job.data.train->spec().name + ": no sample of the last " +
                  std::to_string(empty_in_a_row_) +
                  " windows, as many as the data have, counts: their weight is 0; correct the targets or "
                  "Task::weight");
}

void Trainer::Impl::react(const Window& window, const StepReport& step) {
  const std::string number = std::to_string(step.window);
  if (step.num_out_of_memory > 0) event(OutOfMemory{.window = step.window, .micro_batch = step.micro_batch});
  if (step.outcome != StepOutcome::kNotFinite && step.outcome != StepOutcome::kSpike) return;
  boxes_->leave(window, step);
  if (step.spike) event(Spike{.window = step.window, .what = to_string(*step.spike)});
  if (step.diverged) {
    throw Diverged("diverged at window " + number + ": too many updates in a row were not finite, first in " +
                   step.first_non_finite + "; look at the samples, lower `lr` or set `clip_grad`");
  }
  const std::string cause =
      step.spike ? to_string(*step.spike) : "not finite, first in " + step.first_non_finite;
  switch (reaction_to(step, setup_.job.trouble)) {
    case Reaction::kGoOn:
      return;
    case Reaction::kStop:
      throw Diverged("stopped at window " + number + ": " + cause +
                     "; look at its samples, lower `lr`, set `clip_grad`, or let it skip such windows");
    case Reaction::kRollBack:
      roll_back(step, cause);
  }
}

void Trainer::Impl::evaluate_now() {
  evaluated_at_ = num_windows();
  if (!setup_.job.data.eval) return;
  const auto pause = clock_.pause();
  EvaluateOptions options{
      .precision = setup_.job.engine.precision, .seed = setup_.job.engine.seed, .tables = false};
  // With several ranks all must take part to the end.
  if (setup_.world.size() == 1) options.should_stop = [this] { return stop_->requested() || time_is_over(); };
  const EvalResult result = evaluate(setup_.job.task, *setup_.job.data.eval, setup_.world, options);
  if (!result.complete) return;
  EvalRow row{.update = setup_.engine.counters().updates,
              .epoch = run_.epoch,
              .val_loss = result.loss,
              .metrics = result.metrics,
              .samples = result.samples};
  if (setup_.job.engine.ema_decay > 0) {
    const AveragesGuard averages(setup_.engine);
    const EvalResult averaged = evaluate(setup_.job.task, *setup_.job.data.eval, setup_.world, options);
    if (!averaged.complete) return;
    row.ema_val_loss = averaged.loss;
    row.ema_metrics = averaged.metrics;
  }
  changed_ = true;
  row.time_eval = pause.seconds();
  run_.best.offer(row);
  best_unsaved_ = best_unsaved_ || row.best;
  run_.evals.mark_done(elapsed());
  reporter_->tell([&](Sink& sinks) { sinks.eval(row); });
}

void Trainer::Impl::save(bool export_model, World& world) {
  saved_at_ = num_windows();
  const auto pause = clock_.pause();
  // The state must not know of a best model that the save before could not write.
  saver_->wait();
  hear_of_saves(/*at_end=*/false);
  const Facts lost = agree({.lost_best = saver_->take_lost_best()}, setup_.device, world);
  if (lost.lost_best) run_.best.forget(*lost.lost_best);
  run_.saves.mark_done(elapsed());
  reporter_->tell([&](Sink& sinks) { sinks.note_position(run_.report_positions); });
  reporter_->pass_on_warnings(setup_.engine.counters().updates);
  // If the grace is short, the checkpoint comes first, and model.safetensors is written only if there is
  // time.
  const double grace = setup_.job.save.grace_seconds;
  if (stop_->requested() && grace > 0 && stop_->seconds_since() + 2 * saver_->expected_seconds() > grace)
    export_model = false;
  const auto hand_over = [&] {
    // A checkpoint must not pass over rows that are lost.
    if (saver_->enabled() && reporter_->is_whole())
      saver_->save(run_.state(clock_.seconds()), {.best = best_unsaved_, .export_model = export_model});
  };
  gradstep::together(hand_over, setup_.device, world);  // Task::user_state may throw
  best_unsaved_ = false;
}

bool Trainer::Impl::has_exports() const {
  const auto is_of_now = [&](const char* name) {
    return !output_dir_.empty() &&
           exported_update(output_dir_ + "/" + name) == setup_.engine.counters().updates;
  };
  return is_of_now("model.safetensors") &&
         (setup_.job.engine.ema_decay == 0 || is_of_now("model-ema.safetensors"));
}

RunEnd Trainer::Impl::finish() {
  // Evaluates at the last update if that was not done yet, unless a stop was requested.
  if (nothing_left() && !facts_.stop && !measured_last_update()) evaluate_now();
  // The files of a finished run stay as they are, whatever the settings of this start, unless a kill came
  // before the last of them.
  if (changed_ || of_rank_zero(!has_exports())) save(/*export_model=*/true, setup_.world);
  hear_of_saves(/*at_end=*/true);
  const EngineCounters& counters = setup_.engine.counters();
  if (changed_ && counters.windows > 0 && counters.updates == 0)
    event(Warning{"the weights are as they were at the start: no window of " +
                  std::to_string(counters.windows) + " made an update; each had weight 0 or was skipped"});
  const std::optional<ExitCode> stop = facts_.stop;
  look_around();
  late_stop_ = std::exchange(facts_.stop, stop);  // a signal that comes now ends nothing
  RunEnd end{.update = setup_.engine.counters().updates,
             .total_updates = setup_.length.total_updates,
             .samples = run_.samples,
             .skipped_total = setup_.engine.counters().skipped_total,
             .seconds = clock_.seconds(),
             .reason = end_reason(),
             .last_eval = run_.best.last(),
             .best_eval = run_.best.best(),
             .best_metric = run_.best.metric().name};
  if (end.reason == EndReason::kStopped) end.stopped_by = facts_.stop ? *facts_.stop : *late_stop_;
  if (has_exports()) end.model_path = output_dir_ + "/model.safetensors";
  end.resumable = !output_dir_.empty();
  reporter_->tell([&](Sink& sinks) { sinks.end(end); });
  together([&] { reporter_->throw_failure(); });
  return end;
}

// The state as of the last whole window. Whatever goes wrong here, the first error is the one that counts.
// The other ranks may be gone: none of them is asked.
void Trainer::Impl::save_after_error() noexcept {
  if (!writes() || !reporter_->is_whole() || !setup_.engine.is_whole()) return;
  try {
    SoloWorld alone;
    save(/*export_model=*/true, alone);
    saver_->wait();
  } catch (...) {
  }
}

// A run with nothing left to do is done, even if a stop was requested, and whatever its last evaluation gave.
EndReason Trainer::Impl::end_reason() const {
  if (length_reached() && measured_last_update()) return EndReason::kDone;
  if (facts_.stop) return EndReason::kStopped;
  if (run_.best.out_of_patience()) return EndReason::kEarlyStop;
  if (late_stop_) return EndReason::kStopped;
  return start_is_over() ? EndReason::kStopAfter : EndReason::kMaxTime;
}

bool Trainer::Impl::of_rank_zero(bool own) {
  return sum_over_ranks(writes() && own ? 1 : 0, setup_.device, setup_.world) != 0;
}

bool Trainer::Impl::measured_last_update() const {
  return !setup_.job.data.eval ||
         (run_.best.last() && run_.best.last()->update == setup_.engine.counters().updates);
}

bool Trainer::Impl::start_is_over() const {
  const std::optional<int64_t>& stop_after = setup_.job.length.stop_after;
  return stop_after && setup_.engine.counters().updates - first_update_ >= *stop_after;
}

// With room for one more window and a save before the limit.
bool Trainer::Impl::time_is_over() const {
  const double limit = setup_.job.length.max_seconds;
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - made_).count();
  return limit > 0 && passed + 2 * window_seconds_ + 1.5 * saver_->expected_seconds() >= limit;
}

Trainer::Trainer(Job job, World& world) {
  const bool has_device = job.task.module && !job.task.module->parameters().empty();
  const c10::Device device = has_device ? job.task.module->parameters().front().device() : at::kCPU;
  gradstep::together([&] { impl_ = std::make_unique<Impl>(std::move(job), world); }, device, world);
}
Trainer::~Trainer() = default;
const RunPlan& Trainer::plan() const { return impl_->setup_.plan; }
const std::vector<std::string>& Trainer::warnings() const { return impl_->warnings_; }
bool Trainer::nothing_left() const { return impl_->nothing_left(); }
void Trainer::resume(const FoundCheckpoint& checkpoint) { impl_->resume(checkpoint); }
bool Trainer::resume_newest(const std::string& output_dir) { return impl_->resume_newest(output_dir); }
std::vector<std::string> Trainer::prepare_output(FileSystem& file_system, const std::string& output_dir) {
  impl_->prepare_output(file_system, output_dir);
  return impl_->output_warnings_;
}
RunEnd Trainer::run(Sink& sinks, const StopToken& stop, FileSystem& file_system,
                    const std::string& output_dir) {
  return impl_->run(sinks, stop, file_system, output_dir);
}

}  // namespace gradstep
