// Joins the pieces of a run: output folder, trainer, plan, sinks.
#include "cli/train_command.h"

#include <cstdio>
#include <filesystem>
#include <optional>

#include "cli/terminal.h"
#include "gradstep/base/error.h"
#include "gradstep/base/version.h"
#include "gradstep/dist/world.h"
#include "gradstep/io/atomic_write.h"
#include "gradstep/report/console.h"
#include "gradstep/report/jsonl.h"
#include "gradstep/run/output_dir.h"
#include "gradstep/run/trainer.h"
#include "run/drift.h"
#include "run/resume.h"

namespace gradstep {
namespace {

void warn(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    std::fprintf(stderr, "gradstep: warning: %s\n", warning.c_str());
}

void show_plan(const RunConfig& config, const Trainer& trainer) {
  warn(trainer.warnings());
  if (config.quiet && !config.dry_run) return;
  const std::string plan = format_plan(trainer.plan());
  if (config.dry_run) return write_stdout(plan);
  std::fputs(plan.c_str(), stdout);
  std::fflush(stdout);
}

void write_config(const RunConfig& config, const OutputDir& dir) {
  const std::string text = resolved_config_toml(config, std::string(version()), std::string(git_commit()));
  atomic_write(posix_file_system(), dir.file("config.toml"), {text});
}

// Opens config.output_dir; without one a folder named after the time, with a number where another run began
// in the same second.
void open_folder(RunConfig& config, std::optional<OutputDir>& dir) {
  if (!config.output_dir.empty()) {
    dir.emplace(config.output_dir, output_dir_use(config, config.output_dir));
    return;
  }
  const std::string name = default_output_dir(config.dataset, config.model);
  constexpr int kMaxTries = 100;
  for (int i = 1; !dir; ++i) {
    config.output_dir = i == 1 ? name : name + "-" + std::to_string(i);
    try {
      dir.emplace(config.output_dir);
    } catch (const ConfigError&) {
      if (i == kMaxTries || !std::filesystem::exists(config.output_dir)) throw;
    }
  }
}

}  // namespace

int run_train(const RunConfig& asked, StopToken& stop) {
  RunConfig config = asked;
  config.output_dir = resume_folder(config);
  SoloWorld world;
  if (config.dry_run) {
    if (config.output_dir.empty()) config.output_dir = default_output_dir(config.dataset, config.model);
    const Trainer trainer(config, world);
    show_plan(config, trainer);
    return static_cast<int>(ExitCode::kOk);
  }
  // The folder comes first: finding it taken after the data is read would waste the user's time.
  std::optional<OutputDir> folder;
  open_folder(config, folder);
  const OutputDir& dir = *folder;
  std::optional<FoundCheckpoint> found = checkpoint_to_resume(config.resume, dir.path());
  if (found) config = take_settled(config, found->state.config);
  Trainer trainer(config, world);
  if (found) trainer.resume(*found);
  found.reset();  // its tensors are as large as the run's own
  const std::vector<std::string> about_output = trainer.prepare_output(posix_file_system(), dir.path());
  show_plan(config, trainer);
  warn(about_output);
  if (!trainer.nothing_left()) write_config(trainer.settled_config(), dir);
  SinkList sinks;
  sinks.add(std::make_unique<JsonlSink>(dir.file("metrics.jsonl")));
  sinks.add(
      std::make_unique<ConsoleSink>(stdout, ConsoleOptions{.log_interval = config.log_interval,
                                                           .total_updates = trainer.plan().total_updates,
                                                           .is_terminal = is_terminal(stdout),
                                                           .quiet = config.quiet,
                                                           .width = terminal_width(stdout)}));
  const RunEnd end = trainer.run(sinks, stop, posix_file_system(), dir.path());
  // A signal that came when everything was done ends nothing.
  return static_cast<int>(end.reason == EndReason::kStopped ? end.stopped_by : ExitCode::kOk);
}

}  // namespace gradstep
