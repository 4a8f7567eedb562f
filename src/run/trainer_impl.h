// Trainer::Impl: the parts of a run. The loop is in trainer.cpp, the ways back to a checkpoint in
// trainer_resume.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gradstep/run/trainer.h"
#include "run/agreement.h"
#include "run/black_box_writer.h"
#include "run/reporter.h"
#include "run/row_clock.h"
#include "run/run_progress.h"
#include "run/run_saver.h"
#include "run/run_setup.h"

namespace gradstep {

class Trainer::Impl {
 public:
  Impl(Job job, World& world) : setup_(std::move(job), world), run_(setup_) {}

  void resume(const FoundCheckpoint& found);
  std::vector<std::string> prepare_output(FileSystem& file_system, const std::string& output_dir);
  RunEnd run(Sink& sinks, const StopToken& stop, FileSystem& file_system, const std::string& output_dir);

  [[nodiscard]] bool nothing_left() const { return length_reached() || run_.best.out_of_patience(); }

  RunSetup setup_;
  std::vector<std::string> warnings_;

 private:
  // The next window and where the run stands after it. over() has waited for it, so that either all ranks
  // have one or all of them end.
  struct Fetched {
    Window window;
    Position after;
  };

  void take_over(const FoundCheckpoint& found);  // on this rank
  void begin();
  // Whether the run ends before another window, as all ranks see it; throws where a save that failed ends it.
  bool over();
  [[nodiscard]] int64_t num_windows() const { return setup_.engine.counters().windows; }
  [[nodiscard]] bool eval_due() const;
  [[nodiscard]] bool save_due() const;
  // Brings facts_ up to date. What went wrong on one rank, a sink, a save or the loader, ends all of them
  // here.
  void look_around();
  void fetch();
  Fetched next();  // REQUIRES: over() has just returned false, with nothing else due
  void consume(const Fetched& fetched);
  void react(const Window& window, const StepReport& step);
  void roll_back(const StepReport& report, const std::string& cause);
  template <class Action>
  void together(Action action) {
    gradstep::together(std::move(action), setup_.device, setup_.world);
  }
  void evaluate_now();
  void save(bool export_model);
  [[nodiscard]] bool has_exports() const;  // the model files of this very update
  RunEnd finish();
  [[nodiscard]] std::exception_ptr failure() const;  // of this rank
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
  void hear_of_saves(bool at_end);  // tells the sinks of those that failed

  RunProgress run_;
  RowClock clock_;
  Facts facts_;
  std::optional<Reporter> reporter_;
  std::optional<BlackBoxWriter> boxes_;
  const StopToken* stop_ = nullptr;
  std::string output_dir_;
  std::unique_ptr<RunSaver> saver_;
  std::unique_ptr<Loader> loader_;
  std::optional<Fetched> fetched_;
  std::exception_ptr loader_failure_;
  std::optional<TrainState> resumed_;  // without tensors
  std::string resumed_from_;
  std::vector<Event> first_events_;  // that resume() leaves for the sinks
  int64_t first_update_ = 0;         // of this start
  double window_seconds_ = 0;        // that the slowest recent window took
  int64_t evaluated_at_ = -1;        // windows consumed when it was last tried in this start
  int64_t saved_at_ = -1;
  bool best_unsaved_ = false;
  bool is_fork_ = false;  // resumed from a checkpoint of another folder
  bool changed_ = true;   // since the checkpoint of this folder that the run goes on from
};

}  // namespace gradstep
