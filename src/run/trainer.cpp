// The loop: between two windows everything that is due is done, and within one nothing but the window.
#include "gradstep/run/trainer.h"

#include <torch/torch.h>

#include "gradstep/base/error.h"
#include "gradstep/base/machine.h"
#include "gradstep/run/evaluator.h"
#include "gradstep/step/ema.h"
#include "run/agreement.h"
#include "run/black_box_writer.h"
#include "run/drift.h"
#include "run/model_metadata.h"
#include "run/reporter.h"
#include "run/resume.h"
#include "run/row_clock.h"
#include "run/run_progress.h"
#include "run/run_saver.h"
#include "run/run_setup.h"
#include "run/trouble.h"

namespace gradstep {

class Trainer::Impl {
 public:
  Impl(const RunConfig& config, World& world) : setup_(config, world), run_(setup_) {}

  void resume(const FoundCheckpoint& found);
  std::vector<std::string> prepare_output(FileSystem& file_system, const std::string& output_dir);
  RunEnd run(Sink& sinks, const StopToken& stop, FileSystem& file_system, const std::string& output_dir);

  [[nodiscard]] bool nothing_left() const { return length_reached() || run_.best.out_of_patience(); }

  RunSetup setup_;

 private:
  void begin();
  // Does what is due; false where the run is over.
  bool go_on();
  void look_around();  // brings facts_ up to date, on all ranks alike
  void consume(const Window& window);
  void react(const Window& window, const StepReport& step);
  void roll_back(const StepReport& report, const std::string& cause);
  void evaluate_now();
  void save(bool export_model);
  [[nodiscard]] bool has_exports() const;  // the model files of this very update
  RunEnd finish();
  void save_after_error() noexcept;

  [[nodiscard]] Elapsed elapsed() const { return run_.at(facts_.seconds); }
  [[nodiscard]] bool length_reached() const { return setup_.length.reached(elapsed()); }
  [[nodiscard]] bool time_is_over() const;
  [[nodiscard]] bool start_is_over() const;  // --stop-after
  [[nodiscard]] bool measured_last_update() const;
  [[nodiscard]] EndReason end_reason() const;
  [[nodiscard]] bool writes() const { return setup_.world.rank() == 0; }
  void event(Event what) { reporter_->event(setup_.engine.counters().updates, std::move(what)); }
  // Brings the reports back to where a checkpoint has them.
  void rewind_reports(Sink::Events events);
  void hear_of_saves(bool at_end);  // tells of those that failed
  void report_saves(bool at_end);   // the same, and throws where the run shall not go on

  RunProgress run_;
  RowClock clock_;
  Facts facts_;
  std::optional<Reporter> reporter_;
  std::optional<BlackBoxWriter> boxes_;
  const StopToken* stop_ = nullptr;
  FileSystem* file_system_ = nullptr;
  std::string output_dir_;
  std::unique_ptr<RunSaver> saver_;
  std::unique_ptr<Loader> loader_;
  std::optional<TrainState> resumed_;  // without tensors
  std::string resumed_from_;
  std::vector<Event> first_events_;  // that resume() leaves for the sinks
  int64_t first_update_ = 0;         // of this start
  double window_seconds_ = 0;        // that the slowest recent window took
  bool best_unsaved_ = false;
  bool is_fork_ = false;  // resumed from a checkpoint of another folder
  bool changed_ = true;   // since the checkpoint of this folder that the run goes on from
};

RunEnd Trainer::Impl::run(Sink& sinks, const StopToken& stop, FileSystem& file_system,
                          const std::string& output_dir) {
  reporter_.emplace(sinks, writes());
  stop_ = &stop;
  if (!saver_ || output_dir_ != output_dir) {
    for (const std::string& warning : prepare_output(file_system, output_dir))
      first_events_.emplace_back(Warning{warning});
  }
  boxes_.emplace(file_system, writes() ? output_dir : "", run_, *reporter_);
  begin();
  try {
    while (go_on()) consume(loader_->next());
    return finish();
  } catch (const Diverged&) {
    try {
      sinks.flush();
    } catch (const std::exception&) {  // the divergence is what counts
    }
    throw;
  } catch (...) {
    save_after_error();
    throw;
  }
}

void Trainer::Impl::begin() {
  first_update_ = setup_.engine.counters().updates;
  loader_ = run_.make_loader();
  reporter_->tell([&](Sink& sinks) { sinks.begin(setup_.run_start(resumed_from_)); });
  rewind_reports(Sink::Events::kDrop);
  for (const Event& first : first_events_) event(first);
  clock_.start(resumed_ ? resumed_->seconds : 0);
  if (is_fork_) save(/*export_model=*/false);  // killed before the next one, it goes on from here
}

void Trainer::Impl::rewind_reports(Sink::Events events) {
  std::string missing;
  reporter_->tell([&](Sink& sinks) { missing = sinks.rewind(run_.report_positions, events); });
  // A checkpoint of another folder knows of rows that are not here.
  if (!missing.empty() && !is_fork_) event(Warning{missing});
}

void Trainer::Impl::hear_of_saves(bool at_end) {
  reporter_->tell([&](Sink& sinks) { saver_->report(sinks, at_end); });
  // Its weights are gone: the next evaluation is the best again.
  if (const std::optional<int64_t> lost = saver_->take_lost_best()) run_.best.forget(*lost);
}

void Trainer::Impl::report_saves(bool at_end) {
  hear_of_saves(at_end);
  saver_->throw_failure();
}

bool Trainer::Impl::go_on() {
  look_around();
  const bool eval_due = !facts_.stop && run_.samples > 0 && run_.evals.due(elapsed());
  if (eval_due) evaluate_now();
  const bool save_due = best_unsaved_ || (run_.samples > 0 && run_.saves.due(elapsed()));
  if (save_due) save(/*export_model=*/false);
  report_saves(/*at_end=*/false);
  // These take long. An evaluation that a stop cut short is made at this very window after going on.
  if (eval_due || save_due) look_around();
  return !length_reached() && !facts_.stop && !run_.best.out_of_patience() && !start_is_over() &&
         !facts_.time_is_over;
}

void Trainer::Impl::look_around() {
  facts_ = agree({.seconds = clock_.seconds(),
                  .time_is_over = time_is_over(),
                  .stop = stop_->requested() ? std::optional(stop_->reason()) : std::nullopt},
                 setup_.device, setup_.world);
}

void Trainer::Impl::consume(const Window& window) {
  clock_.data_ready();
  changed_ = true;
  const SteppedOver* known = run_.stepped_over_at(setup_.engine.counters().windows + 1);
  WindowRow row{.step = known ? setup_.engine.step_over(window) : setup_.engine.step(window)};
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
  if (!known) react(window, row.step);
}

void Trainer::Impl::react(const Window& window, const StepReport& step) {
  const std::string number = std::to_string(step.window);
  if (step.num_out_of_memory > 0) event(OutOfMemory{.window = step.window, .micro_batch = step.micro_batch});
  if (step.outcome != StepOutcome::kNotFinite && step.outcome != StepOutcome::kSpike) return;
  boxes_->leave(window, step);
  if (step.spike) event(Spike{.window = step.window, .what = to_string(*step.spike)});
  if (step.diverged) {
    throw Diverged("diverged at window " + number + ": too many updates in a row were not finite, first in " +
                   step.first_non_finite + "; lower --lr or set --clip-grad");
  }
  const std::string cause =
      step.spike ? to_string(*step.spike) : "not finite, first in " + step.first_non_finite;
  switch (reaction_to(step, setup_.config)) {
    case Reaction::kGoOn:
      return;
    case Reaction::kStop:
      throw Diverged("stopped at window " + number + ": " + cause +
                     "; lower --lr, set --clip-grad, or let it skip such windows");
    case Reaction::kRollBack:
      roll_back(step, cause);
  }
}

void Trainer::Impl::roll_back(const StepReport& step, const std::string& cause) {
  saver_->wait();
  report_saves(/*at_end=*/false);
  setup_.world.barrier();  // what rank 0 wrote is there for all
  const std::string number = std::to_string(step.window);
  if (run_.num_rollbacks >= setup_.config.max_rollbacks) {
    throw Diverged("diverged at window " + number + " after " + std::to_string(run_.num_rollbacks) +
                   " rollbacks: " + cause + "; lower --lr, or allow more with --max-rollbacks");
  }
  const std::optional<FoundCheckpoint> found = newest_checkpoint(output_dir_);
  if (!found) {
    throw Diverged("stopped at window " + number + ": " + cause +
                   "; there is no checkpoint to roll back to yet: give a shorter --save-interval");
  }
  // These outlive the way back.
  std::vector<SteppedOver> stepped_over = std::move(run_.stepped_over);
  stepped_over.push_back({step.window, step.loss, step.grad_norm});
  const int64_t num_rollbacks = run_.num_rollbacks + 1;
  run_.take_over(found->path, found->state, setup_.engine.options().micro_batch);
  run_.stepped_over = std::move(stepped_over);
  run_.num_rollbacks = num_rollbacks;
  best_unsaved_ = false;
  loader_ = run_.make_loader();
  rewind_reports(Sink::Events::kKeep);
  for (const std::string& broken : found->broken) event(BrokenCheckpoint{broken});
  event(RolledBack{.window = step.window, .cause = cause, .to = found->path});
}

void Trainer::Impl::evaluate_now() {
  const auto pause = clock_.pause();
  EvaluateOptions options{.precision = setup_.precision.precision};
  // With several ranks all must take part to the end.
  if (setup_.world.size() == 1) options.should_stop = [this] { return stop_->requested() || time_is_over(); };
  const EvalResult result = evaluate(setup_.task, *setup_.data.test, setup_.world, options);
  if (!result.complete) return;
  EvalRow row{.update = setup_.engine.counters().updates,
              .epoch = run_.epoch,
              .val_loss = result.loss,
              .metrics = result.metrics,
              .samples = result.samples};
  if (setup_.engine.ema().enabled()) {
    const EmaWeights::Swap averages(setup_.engine.ema());
    const EvalResult averaged = evaluate(setup_.task, *setup_.data.test, setup_.world, options);
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

void Trainer::Impl::save(bool export_model) {
  const auto pause = clock_.pause();
  // The state must not know of a best model that the save before could not write.
  saver_->wait();
  hear_of_saves(/*at_end=*/false);
  run_.saves.mark_done(elapsed());
  reporter_->tell([&](Sink& sinks) { sinks.note_position(run_.report_positions); });
  // Under a short grace the checkpoint is what counts, and the file for others is written where there is
  // time.
  const double grace = setup_.config.grace;
  if (stop_->requested() && grace > 0 && stop_->seconds_since() + 2 * saver_->expected_seconds() > grace)
    export_model = false;
  if (saver_->enabled())
    saver_->save(run_.state(clock_.seconds()), {.best = best_unsaved_, .export_model = export_model});
  best_unsaved_ = false;
}

bool Trainer::Impl::has_exports() const {
  const auto is_of_now = [&](const char* name) {
    return !output_dir_.empty() &&
           exported_update(output_dir_ + "/" + name) == setup_.engine.counters().updates;
  };
  return is_of_now("model.safetensors") && (setup_.config.ema == 0 || is_of_now("model-ema.safetensors"));
}

RunEnd Trainer::Impl::finish() {
  // A loss that nobody measured at the last update is measured now, unless somebody wants to leave.
  if (nothing_left() && !facts_.stop && !measured_last_update()) evaluate_now();
  // What a finished run left stays as it is, whatever flags this start was given; unless a kill came before
  // its last files.
  if (changed_ || !has_exports()) save(/*export_model=*/true);
  report_saves(/*at_end=*/true);
  RunEnd end{.update = setup_.engine.counters().updates,
             .total_updates = setup_.length.total_updates,
             .samples = run_.samples,
             .skipped_total = setup_.engine.counters().skipped_total,
             .seconds = clock_.seconds(),
             .reason = end_reason(),
             .last_eval = run_.best.last(),
             .best_eval = run_.best.best(),
             .best_metric = run_.best.metric().name};
  if (end.reason == EndReason::kStopped) end.stopped_by = facts_.stop ? *facts_.stop : stop_->reason();
  if (has_exports()) end.model_path = output_dir_ + "/model.safetensors";
  end.can_go_on = !output_dir_.empty();
  reporter_->tell([&](Sink& sinks) { sinks.end(end); });
  setup_.world.barrier();
  return end;
}

// The state as of the last whole window. Whatever goes wrong here, the first error is the one that counts.
void Trainer::Impl::save_after_error() noexcept {
  if (!reporter_->is_whole() || !setup_.engine.is_whole()) return;
  try {
    save(/*export_model=*/true);
    saver_->wait();
  } catch (const std::exception&) {
  }
}

// A run with nothing left to do is done, whoever asked it to stop, and however its last evaluation came out.
EndReason Trainer::Impl::end_reason() const {
  if (length_reached() && measured_last_update()) return EndReason::kDone;
  if (facts_.stop) return EndReason::kStopped;
  if (run_.best.out_of_patience()) return EndReason::kEarlyStop;
  if (stop_->requested()) return EndReason::kStopped;
  return start_is_over() ? EndReason::kStopAfter : EndReason::kMaxTime;
}

bool Trainer::Impl::measured_last_update() const {
  return run_.best.last() && run_.best.last()->update == setup_.engine.counters().updates;
}

bool Trainer::Impl::start_is_over() const {
  const std::optional<int64_t>& stop_after = setup_.config.stop_after;
  return stop_after && setup_.engine.counters().updates - first_update_ >= *stop_after;
}

void Trainer::Impl::resume(const FoundCheckpoint& found) {
  const TrainState& state = found.state;
  const RunConfig config = setup_.config_with_threads();
  const std::vector<Drift> drifts =
      find_drift(state, {.config = config,
                         .global_batch = setup_.sampler.global_batch(),
                         .total_updates = setup_.length.total_updates,
                         .dataset_fingerprint = setup_.data.train->fingerprint()});
  refuse_drift(drifts, found.path, config.accept_drift);
  const bool same_batch = config.batch_size == state.config.batch_size;
  run_.take_over(found.path, state, same_batch ? state.engine.micro_batch : config.batch_size);
  // A best evaluation by another measure says nothing about this one.
  if (config.best_metric != state.config.best_metric) run_.best.restore(state.last_eval, std::nullopt, 0);
  resumed_ = state;
  resumed_->model = resumed_->optimizer = resumed_->ema = {};
  resumed_from_ = found.path;
  if (config.precision == state.config.precision && config.matmul == state.config.matmul)
    setup_.plan.precision_reason = "as before";
  first_events_.emplace_back(
      Resumed{.from = found.path, .window = state.engine.counters.windows, .nothing_left = nothing_left()});
  for (const std::string& broken : found.broken) {
    setup_.warnings.push_back("a checkpoint is broken and was passed over: " + broken);
    first_events_.emplace_back(BrokenCheckpoint{broken});
  }
  for (const Drift& drift : drifts) {
    const bool accepted = drift.kind == OnResume::kRefused;
    if (drift.kind != OnResume::kFree)
      setup_.warnings.push_back("--resume: " + describe(drift) + (accepted ? " (accepted)" : ""));
    first_events_.emplace_back(SettingChanged{.key = drift.key, .before = drift.before, .now = drift.now});
  }
}

std::vector<std::string> Trainer::Impl::prepare_output(FileSystem& file_system,
                                                       const std::string& output_dir) {
  file_system_ = &file_system;
  output_dir_ = output_dir;
  saver_ = std::make_unique<RunSaver>(
      file_system, setup_.config, writes() ? output_dir : "", save_bytes(capture_engine(setup_.engine)),
      planned_saves(setup_.config, setup_.length, setup_.sampler.windows_per_epoch()));
  is_fork_ = resumed_ && !is_of_run(resumed_from_, output_dir);
  // What was read from this very folder need not be written there again.
  changed_ = !resumed_ || is_fork_;
  if (!changed_) saver_->note_saved(*resumed_);
  // The files of the best evaluation are in the folder that it was made in.
  if (is_fork_ && !output_dir.empty()) run_.best.forget();
  return saver_->check();
}

// With room for one more window and a save before the limit.
bool Trainer::Impl::time_is_over() const {
  const double limit = setup_.config.max_time;
  return limit > 0 && process_seconds() + 2 * window_seconds_ + 1.5 * saver_->expected_seconds() >= limit;
}

Trainer::Trainer(const RunConfig& config, World& world) : impl_(std::make_unique<Impl>(config, world)) {}
Trainer::~Trainer() = default;
const RunPlan& Trainer::plan() const { return impl_->setup_.plan; }
RunConfig Trainer::settled_config() const { return impl_->setup_.config; }
const std::vector<std::string>& Trainer::warnings() const { return impl_->setup_.warnings; }
bool Trainer::nothing_left() const { return impl_->nothing_left(); }
void Trainer::resume(const FoundCheckpoint& checkpoint) { impl_->resume(checkpoint); }
std::vector<std::string> Trainer::prepare_output(FileSystem& file_system, const std::string& output_dir) {
  return impl_->prepare_output(file_system, output_dir);
}
RunEnd Trainer::run(Sink& sinks, const StopToken& stop, FileSystem& file_system,
                    const std::string& output_dir) {
  return impl_->run(sinks, stop, file_system, output_dir);
}

}  // namespace gradstep
