// Trainer::Impl: the parts of a run. The loop is in trainer.cpp, the ways back to a checkpoint in
// trainer_resume.cpp.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/together.h"
#include "gradstep/run/trainer.h"
#include "run/agreement.h"
#include "run/black_box_writer.h"
#include "run/drift.h"
#include "run/reporter.h"
#include "run/row_clock.h"
#include "run/run_progress.h"
#include "run/run_saver.h"
#include "run/run_setup.h"
#include "run/speed_watch.h"

namespace gradstep {

class Trainer::Impl {
 public:
  Impl(Job job, World& world) : setup_(std::move(job), world), run_(setup_) {}

  void resume(const FoundCheckpoint& found);
  bool resume_newest(const std::string& output_dir);
  void prepare_output(FileSystem& file_system, const std::string& output_dir);
  RunEnd run(Sink& sinks, const StopToken& stop, FileSystem& file_system, const std::string& output_dir);

  [[nodiscard]] bool nothing_left() const { return length_reached() || run_.best.out_of_patience(); }

  const std::chrono::steady_clock::time_point made_ = std::chrono::steady_clock::now();
  RunSetup setup_;
  std::vector<std::string> warnings_;         // of resume()
  std::vector<std::string> output_warnings_;  // of prepare_output()

 private:
  void begin();
  // Whether the run ends before another window, as all ranks see it. Throws if a failed save ends it.
  bool over();
  [[nodiscard]] int64_t num_windows() const { return setup_.engine.counters().windows; }
  [[nodiscard]] bool eval_due() const;
  [[nodiscard]] bool save_due() const;
  // Makes the window to come, if it will be consumed. look_around() tells all ranks if that failed.
  void fetch();
  Window next();  // that fetch() made
  // Updates facts_. If something failed on one rank, throws on all of them.
  void look_around();
  void consume(const Window& window);
  // Ends a window if the rest of it and a save would not fit into the grace of a stop.
  [[nodiscard]] GiveUp give_up() const;
  void warn_of_short_grace(const WindowRow& row);
  void react(const Window& window, const StepReport& step);
  void refuse_empty_epoch(const StepReport& step);
  void roll_back(const StepReport& report, const std::string& cause);
  void take_over(const FoundCheckpoint& found);  // at the start
  void follow_schedule(const TrainState& state, const std::vector<Drift>& drifts);
  // Copies the files of the best evaluation out of the folder that the run was resumed from, or forgets it.
  void bring_best_along(FileSystem& file_system);
  void miss_best();  // forgets a best whose file is not in this folder
  // That of all ranks; none if no rank has found one. Throws on all if one cannot read, or has found none.
  std::optional<FoundCheckpoint> newest_of_all(const std::string& output_dir);
  // Throws on all ranks if they have not all found a checkpoint of the same window.
  void require_same_window(const FoundCheckpoint& found);
  // Runs `action` on this rank, and throws on all of them if it throws on one.
  template <class Action>
  void together(Action action) {
    gradstep::together(action, setup_.device, setup_.world);
  }
  // As rank 0 sees it.
  [[nodiscard]] bool of_rank_zero(bool own);
  void evaluate_now();
  // The ranks of `world` agree on whether a best model was lost.
  void save(bool export_model, World& world);
  [[nodiscard]] bool has_exports() const;  // the model files of this very update
  RunEnd finish();
  void save_after_error() noexcept;
  void tell_failure();

  [[nodiscard]] Elapsed elapsed() const { return run_.at(facts_.seconds); }
  [[nodiscard]] bool length_reached() const { return setup_.length.reached(elapsed()); }
  [[nodiscard]] bool time_is_over() const;
  [[nodiscard]] bool start_is_over() const;  // JobLength::stop_after
  [[nodiscard]] bool measured_last_update() const;
  [[nodiscard]] EndReason end_reason() const;
  [[nodiscard]] bool writes() const { return setup_.world.rank() == 0; }
  void event(Event what) { reporter_->event(setup_.engine.counters().updates, std::move(what)); }
  // Brings the reports back to where a checkpoint has them.
  void rewind_reports(Sink::Events events);
  void hear_of_saves(bool at_end);  // tells the sinks of those that failed

  RunProgress run_;
  RowClock clock_;
  SpeedWatch speed_watch_;
  Facts facts_;
  std::optional<ExitCode> late_stop_;  // that came when the end was decided
  std::optional<Reporter> reporter_;
  std::optional<BlackBoxWriter> boxes_;
  const StopToken* stop_ = nullptr;
  std::string output_dir_;
  std::unique_ptr<RunSaver> saver_;
  std::unique_ptr<Loader> loader_;
  std::optional<Window> window_;       // to come
  std::exception_ptr own_failure_;     // of the loader or of a window; all ranks hear of it in look_around()
  std::optional<TrainState> resumed_;  // without tensors
  std::string resumed_from_;
  std::vector<Event> first_events_;  // that resume() leaves for the sinks
  int64_t first_update_ = 0;         // of this start
  int64_t empty_in_a_row_ = 0;       // windows of weight 0
  double window_seconds_ = 0;        // that the slowest recent window took
  int64_t evaluated_at_ = -1;        // windows consumed when it was last tried in this start
  int64_t saved_at_ = -1;
  bool best_unsaved_ = false;
  bool grace_checked_ = false;
  bool best_is_elsewhere_ = false;  // in the folder that the run was resumed from
  bool is_fork_ = false;            // resumed from a checkpoint of another folder
  bool changed_ = true;             // since the checkpoint of this folder that the run goes on from
};

}  // namespace gradstep
