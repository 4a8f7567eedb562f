// no torch
// Each setting carries its rule for a changed value; some are judged by the values that follow from them.
#include "run/drift.h"

#include <algorithm>

#include "gradstep/base/error.h"

namespace gradstep {
namespace {

std::string count_text(int64_t count) { return count > 0 ? std::to_string(count) : std::string("no end"); }

void add_unless_equal(const std::string& key, const std::string& before, const std::string& now,
                      OnResume kind, std::vector<Drift>& drifts) {
  if (before != now) drifts.push_back({key, before, now, kind});
}

std::string build_text(const std::string& version, const std::string& git_commit) {
  return version + " (commit " + git_commit + ")";
}

}  // namespace

std::vector<Drift> find_drift(const TrainState& before, const RunIdentity& now) {
  std::vector<Drift> drifts;
  for (const Setting& setting : now.settings) {
    if (setting.on_resume == OnResume::kNotCompared) continue;
    const auto found = before.settings.find(setting.key);
    // An empty text is no value: the first version wrote it where there was none.
    const bool is_known = found != before.settings.end() && !found->second.empty();
    const std::string& was = is_known ? found->second : setting.default_text;
    add_unless_equal(setting.key, was, setting.text, setting.on_resume, drifts);
  }
  for (const auto& [key, was] : before.settings) {
    if (std::ranges::find(now.settings, key, &Setting::key) == now.settings.end())
      drifts.push_back({key, was, "no setting of this program", OnResume::kWarned});
  }
  // A loop of one's own may leave them out.
  if (!before.version.empty())
    add_unless_equal("gradstep", build_text(before.version, before.git_commit),
                     build_text(now.version, now.git_commit), OnResume::kWarned, drifts);
  if (!before.torch_version.empty())
    add_unless_equal("LibTorch", before.torch_version, now.torch_version, OnResume::kWarned, drifts);
  add_unless_equal("best_metric", before.best_metric, now.best_metric, OnResume::kWarned, drifts);
  add_unless_equal("global batch (`batch_size`, `grad_accum_steps`, `global_batch_size`)",
                   std::to_string(before.global_batch), std::to_string(now.global_batch), OnResume::kRefused,
                   drifts);
  add_unless_equal("updates of the run (`epochs`, `max_steps`)", count_text(before.planned_updates),
                   count_text(now.planned_updates), OnResume::kRefused, drifts);
  // A checkpoint of the first version does not know its evaluation data.
  if (!before.eval_fingerprint.empty())
    add_unless_equal("evaluation data", before.eval_fingerprint, now.eval_fingerprint, OnResume::kWarned,
                     drifts);
  add_unless_equal("data", before.dataset_fingerprint, now.dataset_fingerprint, OnResume::kRefused, drifts);
  return drifts;
}

void refuse_drift(const std::vector<Drift>& drifts, const std::string& checkpoint, bool accept_drift) {
  std::string found;
  for (const Drift& drift : drifts) {
    if (drift.kind == OnResume::kRefused) found += (found.empty() ? "" : "; ") + describe(drift);
  }
  if (found.empty() || accept_drift) return;
  throw ConfigError("`resume`: " + checkpoint + " belongs to a different run: " + found +
                    "; use the earlier values, another `output_dir`, or go on with `accept_drift`");
}

std::string describe(const Drift& drift) {
  const auto shown = [](const std::string& text) { return text.empty() ? std::string("not given") : text; };
  return drift.key + " was " + shown(drift.before) + ", is " + shown(drift.now);
}

}  // namespace gradstep
