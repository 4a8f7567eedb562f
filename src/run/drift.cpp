// no torch
// Each setting carries its rule for a changed value; some are judged by the values that follow from them.
#include "run/drift.h"

#include <algorithm>

#include "base/number_text.h"
#include "gradstep/base/error.h"
#include "gradstep/step/optimizer.h"

namespace gradstep {
namespace {

std::string count_text(int64_t count) { return count > 0 ? std::to_string(count) : std::string("no end"); }

void add_unless_equal(const std::string& key, const std::string& before, const std::string& now,
                      OnResume kind, std::vector<Drift>& drifts) {
  if (before != now) drifts.push_back({key, before, now, kind});
}

// The patterns, and which of them freeze. Empty if none does.
std::vector<std::pair<std::string, bool>> frozen_patterns(const std::string& groups) try {
  std::vector<std::pair<std::string, bool>> patterns;
  bool has_frozen = false;
  for (const ParamGroup& group : parse_param_groups(groups)) {
    patterns.emplace_back(group.pattern, group.frozen);
    has_frozen = has_frozen || group.frozen;
  }
  return has_frozen ? patterns : std::vector<std::pair<std::string, bool>>{};
} catch (const ConfigError&) {
  return {};  // of a program that has a setting of this name for something else
}

std::string build_text(const std::string& version, const std::string& git_commit) {
  return version + " (commit " + git_commit + ")";
}

// SGD without momentum has no moments.
bool begins_or_ends_momentum(const std::string& before, const std::string& now) {
  return (parse_real(before) == 0.0) != (parse_real(now) == 0.0);
}

// Whether the checkpoint's optimizer has other tensors than the run's, so that no resume can take them.
bool changes_the_moments(const Drift& drift) {
  return drift.key == "opt" ||
         (drift.key == "momentum" && begins_or_ends_momentum(drift.before, drift.now)) ||
         (drift.key == "param_groups" && frozen_patterns(drift.before) != frozen_patterns(drift.now));
}

bool is_sgd(const RunIdentity& run) {
  const auto opt = std::ranges::find(run.settings, "opt", &Setting::key);
  return opt != run.settings.end() && opt->text == to_string(OptimizerKind::kSgd);
}

}  // namespace

std::vector<Drift> find_drift(const TrainState& before, const RunIdentity& now) {
  std::vector<Drift> drifts;
  for (const Setting& setting : now.settings) {
    if (setting.on_resume == OnResume::kNotCompared) continue;
    const auto found = before.settings.find(setting.key);
    const std::string& was = found == before.settings.end() ? setting.default_text : found->second;
    add_unless_equal(setting.key, was, setting.text, setting.on_resume, drifts);
  }
  for (Drift& drift : drifts) {
    // Another momentum goes on from the same moments, but not with one of 0; other optimizers have none.
    if (drift.key == "momentum" && changes_the_moments(drift) && is_sgd(now)) drift.kind = OnResume::kRefused;
  }
  for (const auto& [key, was] : before.settings) {
    if (std::ranges::find(now.settings, key, &Setting::key) == now.settings.end())
      drifts.push_back({key, was, "no setting of this program", OnResume::kWarned});
  }
  add_unless_equal("gradstep", build_text(before.version, before.git_commit),
                   build_text(std::string(version()), std::string(git_commit())), OnResume::kWarned, drifts);
  if (!before.torch_version.empty())
    add_unless_equal("LibTorch", before.torch_version, TORCH_VERSION, OnResume::kWarned, drifts);
  add_unless_equal("best_metric", before.best_metric, now.best_metric, OnResume::kWarned, drifts);
  add_unless_equal("global batch (`batch_size`, `grad_accum_steps`, `global_batch_size`)",
                   std::to_string(before.global_batch), std::to_string(now.global_batch), OnResume::kRefused,
                   drifts);
  add_unless_equal("updates of the run (`epochs`, `max_steps`)", count_text(before.total_updates),
                   count_text(now.total_updates), OnResume::kRefused, drifts);
  add_unless_equal("data", before.dataset_fingerprint, now.dataset_fingerprint, OnResume::kRefused, drifts);
  return drifts;
}

void refuse_drift(const std::vector<Drift>& drifts, const std::string& checkpoint, bool accept_drift) {
  std::string found;
  bool may_go_on = true;
  for (const Drift& drift : drifts) {
    if (drift.kind != OnResume::kRefused) continue;
    found += (found.empty() ? "" : "; ") + describe(drift);
    may_go_on = may_go_on && !changes_the_moments(drift);
  }
  if (found.empty() || (accept_drift && may_go_on)) return;
  throw ConfigError(
      "`resume`: " + checkpoint + " belongs to a different run: " + found + "; use the earlier values" +
      (may_go_on ? ", another `output_dir`, or go on with `accept_drift`" : " or another `output_dir`"));
}

std::string describe(const Drift& drift) {
  const auto shown = [](const std::string& text) { return text.empty() ? std::string("not given") : text; };
  return drift.key + " was " + shown(drift.before) + ", is " + shown(drift.now);
}

}  // namespace gradstep
