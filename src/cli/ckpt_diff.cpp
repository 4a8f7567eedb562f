// ckpt diff: settings key by key, then whatever compare_states finds.
#include <algorithm>
#include <array>
#include <string_view>

#include "cli/ckpt_command.h"
#include "cli/ckpt_path.h"
#include "cli/terminal.h"
#include "run/flag_table.h"

namespace gradstep {
namespace {

// They say where files lie, how a run was started and what it shows, not what is computed.
constexpr std::array<std::string_view, 13> kLeftOut = {
    "data_dir", "output_dir", "resume",       "accept_drift",     "stop_after",    "max_time",     "grace",
    "quiet",    "dry_run",    "log_interval", "keep_checkpoints", "on_save_error", "save_interval"};

std::vector<StateDifference> setting_differences(const RunConfig& a, const RunConfig& b) {
  std::vector<StateDifference> found;
  for (const Flag<RunConfig>& flag : train_flags()) {
    if (std::ranges::find(kLeftOut, flag.info.key) != kLeftOut.end()) continue;
    if (flag.get(a) == flag.get(b)) continue;
    found.push_back({"setting " + flag.info.key, flag.get(a) + " and " + flag.get(b)});
  }
  return found;
}

}  // namespace

int run_ckpt_diff(const CkptDiffOptions& options) {
  const FoundCheckpoint a = load_checkpoint_at(options.first);
  const FoundCheckpoint b = load_checkpoint_at(options.second);
  warn_of_broken(a);
  warn_of_broken(b);
  std::vector<StateDifference> found = setting_differences(a.state.config, b.state.config);
  std::ranges::move(compare_states(a.state, b.state), std::back_inserter(found));
  std::string text = "first:  " + a.path + "\nsecond: " + b.path + "\n";
  for (const StateDifference& each : found) text += each.what + ": " + each.detail + "\n";
  const size_t num_tensors = a.state.model.size() + a.state.optimizer.size() + a.state.ema.size();
  if (found.empty()) {
    text += "equal: " + std::to_string(num_tensors) + " tensors, bit for bit, counters and settings\n";
  } else {
    text += std::to_string(found.size()) + (found.size() == 1 ? " difference\n" : " differences\n");
  }
  write_stdout(text);
  return found.empty() ? 0 : 1;
}

}  // namespace gradstep
