// ckpt diff: settings key by key, then whatever compare_states finds.
#include <algorithm>
#include <iterator>

#include "app/program.h"
#include "app/run_settings.h"
#include "checkpoint/tensor_lists.h"
#include "commands/ckpt_command.h"
#include "commands/ckpt_path.h"
#include "commands/terminal.h"
#include "run/drift.h"

namespace gradstep {
namespace {

// The second's settings, with the rules of this program's flags.
Settings judged(const TrainState& state) {
  std::map<std::string, std::string> left = state.settings;
  Settings settings = RunSettings(program().catalog).texts(state.settings);
  for (const Setting& setting : settings) left.erase(setting.key);
  for (const auto& [key, text] : left) settings.push_back({key, text});
  return settings;
}

// Those that change what is computed, as a resume judges them. What follows from them, compare_states names.
std::vector<StateDifference> setting_differences(const TrainState& a, const TrainState& b) {
  const Settings settings = judged(b);
  const RunIdentity second{.settings = settings,
                           .global_batch = a.global_batch,
                           .planned_updates = a.planned_updates,
                           .dataset_fingerprint = a.dataset_fingerprint,
                           .eval_fingerprint = b.eval_fingerprint,
                           .best_metric = b.best_metric,
                           .version = b.version,
                           .git_commit = b.git_commit,
                           .torch_version = b.torch_version};
  std::vector<StateDifference> found;
  for (const Drift& drift : find_drift(a, second)) {
    if (drift.kind != OnResume::kFree)
      found.push_back({"setting " + drift.key, drift.before + " and " + drift.now});
  }
  return found;
}

}  // namespace

int run_ckpt_diff(const CkptDiffOptions& options) {
  const FoundCheckpoint a = load_checkpoint_at(options.first);
  const FoundCheckpoint b = load_checkpoint_at(options.second);
  warn_of_broken(a);
  warn_of_broken(b);
  std::vector<StateDifference> found = setting_differences(a.state, b.state);
  std::ranges::move(compare_states(a.state, b.state), std::back_inserter(found));
  std::string text = "first:  " + a.path + "\nsecond: " + b.path + "\n";
  for (const StateDifference& each : found) text += each.what + ": " + each.detail + "\n";
  if (found.empty()) {
    text +=
        "equal: " + std::to_string(num_tensors(a.state)) + " tensors, bit for bit, counters and settings\n";
  } else {
    text += std::to_string(found.size()) + (found.size() == 1 ? " difference\n" : " differences\n");
  }
  write_stdout(text);
  return found.empty() ? 0 : 1;
}

}  // namespace gradstep
