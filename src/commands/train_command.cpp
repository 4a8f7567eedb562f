// Joins the pieces of a run: output folder, trainer, plan, sinks.
#include "commands/train_command.h"

#include <cstdio>
#include <filesystem>
#include <optional>

#include "app/make_job.h"
#include "app/resume_flag.h"
#include "commands/spell_flags.h"
#include "commands/terminal.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/output_dir.h"
#include "gradstep/dist/world.h"
#include "gradstep/report/sinks.h"
#include "gradstep/run/trainer.h"
#include "io/atomic_write.h"
#include "io/read_file.h"
#include "report/report_to.h"

namespace gradstep {
namespace {

void warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) write_warning(warning);
}

void show_plan(const RunConfig& config, const RunPlan& plan) {
  if (config.quiet && !config.dry_run) return;
  const std::string text = format_plan(plan);
  if (config.dry_run) return write_stdout(text);
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

std::string new_folder_name(const RunConfig& config) {
  return default_output_dir(config.dataset, config.model);
}

// Opens the folder as asked; without one a folder named after the time, with a number where another run began
// in the same second.
void open_folder(const RunConfig& config, const std::string& asked, std::optional<OutputDir>& dir) {
  if (!asked.empty()) {
    dir.emplace(asked, output_dir_use(config.resume, asked));
    return;
  }
  const std::string name = new_folder_name(config);
  constexpr int kMaxTries = 100;
  for (int i = 1; !dir; ++i) {
    const std::string next = i == 1 ? name : name + "-" + std::to_string(i);
    try {
      dir.emplace(next);
    } catch (const ConfigError&) {
      if (i == kMaxTries || !std::filesystem::exists(status_of(next))) throw;
    }
  }
}

// What the console would show: under --quiet it is silent.
class WarningsOnStderr final : public Sink {
 public:
  void window(const WindowRow& /*row*/) override {}
  void eval(const EvalRow& /*row*/) override {}
  void event(const EventRow& row) override {
    if (const auto* warning = std::get_if<Warning>(&row.event)) write_warning(warning->text);
    if (const auto* slow = std::get_if<SlowedDown>(&row.event)) write_warning(slow->what);
  }
  void end(const RunEnd& /*row*/) override {}
};

void add_sinks(const RunConfig& config, const RunPlan& plan, const OutputDir& dir, SinkList& sinks) {
  sinks.add(std::make_unique<JsonlSink>(dir.file("metrics.jsonl")));
  sinks.add(std::make_unique<ConsoleSink>(stdout, ConsoleOptions{.log_interval = config.log_interval,
                                                                 .total_updates = plan.total_updates,
                                                                 .is_terminal = is_terminal(stdout),
                                                                 .quiet = config.quiet,
                                                                 .width = terminal_width(stdout),
                                                                 .resume_hint = "go on with --resume auto",
                                                                 .reword = spell_flags}));
  if (config.quiet) sinks.add(std::make_unique<WarningsOnStderr>());
  add_reports(sinks, config.report_to, dir.path());
}

int plan_only(const RunSettings& settings, const std::string& output_dir, const StopToken& stop) {
  const at::Device device = configure_process(process_options(settings.config));
  SoloWorld world;
  PreparedJob prepared = make_job(settings, world, device, /*before=*/nullptr, &stop);
  const Trainer trainer(std::move(prepared.job), world);
  warn(prepared.warnings);
  RunPlan plan = trainer.plan();
  plan.output_dir = output_dir.empty() ? new_folder_name(settings.config) : output_dir;
  show_plan(settings.config, plan);
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace

int run_train(const RunSettings& settings, StopToken& stop) {
  const RunConfig& config = settings.config;
  const std::string asked_folder = resume_folder(config.resume, config.output_dir);
  if (config.dry_run) return plan_only(settings, asked_folder, stop);
  // The folder comes first: finding it taken after the data is read would waste the user's time.
  std::optional<OutputDir> folder;
  open_folder(config, asked_folder, folder);
  const OutputDir& dir = *folder;
  if (!dir.warning().empty()) write_warning(dir.warning());
  std::optional<FoundCheckpoint> found = checkpoint_to_resume(config.resume, dir.path());
  const at::Device device = configure_process(process_options(config));
  SoloWorld world;
  PreparedJob prepared = make_job(settings, world, device, found ? &found->state : nullptr, &stop);
  Trainer trainer(std::move(prepared.job), world);
  if (found) trainer.resume(*found);
  found.reset();                                            // its tensors are as large as the run's own
  trainer.prepare_output(posix_file_system(), dir.path());  // the sinks get its warnings
  warn(prepared.warnings);
  warn(trainer.warnings());
  show_plan(config, trainer.plan());
  if (!trainer.nothing_left()) {
    prepared.settled["output_dir"] = dir.path();
    atomic_write(posix_file_system(), dir.file("config.toml"), {settings.toml(prepared.settled)});
  }
  SinkList sinks;
  add_sinks(config, trainer.plan(), dir, sinks);
  settings.model().add_sinks(sinks, dir.path());
  const RunEnd end = trainer.run(sinks, stop, posix_file_system(), dir.path());
  sinks.close();
  warn(sinks.take_warnings());
  // A signal that came when everything was done ends nothing.
  return static_cast<int>(end.reason == EndReason::kStopped ? end.stopped_by : ExitCode::kOk);
}

}  // namespace gradstep
