// What a job keeps of itself in checkpoints, and what makes no sense in one.
#include "gradstep/run/job.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "base/is_within.h"
#include "base/number_text.h"
#include "base/utf8.h"
#include "checkpoint/model_metadata.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

std::string yes_or_no(bool value) { return value ? "true" : "false"; }

// An optimizer of one's own is known by its options only.
std::string optimizer_name(const EngineOptions& engine) {
  if (engine.make_optimizer) return "own";
  return to_string(engine.optimizer.kind);
}

void require(bool holds, const std::string& what) {
  if (!holds) throw ConfigError("the job: " + what);
}

// Checkpoints keep it as text.
void require_interval(const std::string& name, const Interval& interval) {
  bool is_readable = false;
  try {
    is_readable = std::isfinite(interval.value) && parse_interval(to_string(interval)) == interval;
  } catch (const ConfigError&) {
  }
  require(is_readable,
          name + " must be a whole number of updates or epochs, or some seconds; 0 is only at the end");
}

void require_reaction(const std::string& name, Reaction reaction) {
  require(is_within(reaction, Reaction::kGoOn, Reaction::kRollBack),
          name + " must be Reaction::kGoOn, kStop or kRollBack");
}

void check_settings(const Settings& settings) {
  std::set<std::string> keys;
  for (const Setting& setting : settings) {
    const std::string key = to_utf8(setting.key);  // as files have it
    require(keys.insert(key).second, "two settings are named " + key + "; rename one");
    require(is_within(setting.on_resume, OnResume::kRefused, OnResume::kNotCompared),
            "setting " + key + ": on_resume must be a value of OnResume");
  }
}

Settings engine_settings(const Job& job) {
  const EngineOptions& engine = job.engine;
  const OptimizerOptions& optimizer = engine.optimizer;
  const LrSchedule& schedule = engine.schedule;
  return {{"seed", std::to_string(engine.seed)},
          {"order", job.order ? "own" : "shuffled"},
          {"opt", optimizer_name(engine)},
          {"lr", shortest(schedule.peak), OnResume::kWarned},
          {"weight_decay", shortest(optimizer.weight_decay), OnResume::kWarned},
          {"decay_all", yes_or_no(optimizer.decay_all), OnResume::kWarned},
          {"param_groups", to_string(optimizer.groups)},
          {"beta1", shortest(optimizer.beta1), OnResume::kWarned},
          {"beta2", shortest(optimizer.beta2), OnResume::kWarned},
          {"eps", shortest(optimizer.eps), OnResume::kWarned},
          {"momentum", shortest(optimizer.momentum), OnResume::kWarned},
          {"nesterov", yes_or_no(optimizer.nesterov), OnResume::kWarned},
          {"clip_grad", shortest(engine.clip_grad), OnResume::kWarned},
          {"ema", shortest(engine.ema_decay), OnResume::kWarned},
          {"sched", schedule.function ? "own" : to_string(schedule.shape)},
          {"total_steps", std::to_string(schedule.total_steps), OnResume::kRefused, "0"},
          {"epoch_size", std::to_string(job.epoch_size), OnResume::kRefused, "0"},
          {"warmup_steps", std::to_string(schedule.warmup_steps)},
          {"min_lr", shortest(schedule.min)},
          {"batch_size", std::to_string(engine.micro_batch), OnResume::kWarned},
          {"precision", to_string(engine.precision), OnResume::kWarned},
          {"matmul", to_string(current_matmul()), OnResume::kWarned},
          {"threads", std::to_string(at::get_num_threads()), OnResume::kWarned},
          {"init_scale", shortest(engine.scaler.init_scale), OnResume::kFree},
          {"growth_factor", shortest(engine.scaler.growth_factor), OnResume::kWarned},
          {"backoff_factor", shortest(engine.scaler.backoff_factor), OnResume::kWarned},
          {"growth_interval", std::to_string(engine.scaler.growth_interval), OnResume::kWarned},
          {"max_skips_in_a_row", std::to_string(engine.max_skips_in_a_row), OnResume::kFree},
          {"spike_zscore", shortest(engine.spikes.z_score), OnResume::kWarned},
          {"spike_window", std::to_string(engine.spikes.window), OnResume::kWarned}};
}

}  // namespace

Settings settings_of(const Job& job) {
  Settings settings = job.settings;
  if (job.settings_are_complete) return settings;
  for (Setting& option : engine_settings(job)) {
    if (std::ranges::find(job.settings, option.key, &Setting::key) == job.settings.end())
      settings.push_back(std::move(option));
  }
  return settings;
}

void validate(const Job& job) {
  constexpr int64_t kMaxSamples = int64_t{1} << 31;  // of a window; what checkpoints can hold
  constexpr int64_t kMaxCount = int64_t{1} << 48;
  const auto within = [](int64_t value, int64_t least, int64_t most) {
    return value >= least && value <= most;
  };
  validate(job.task);
  check_model_settings(job.model_settings);
  check_settings(job.settings);
  require(job.data.train != nullptr, "it has no training data; fill in data");
  require(job.data.train->size() >= 1, "its training data have no sample; give some");
  require(!job.data.eval || job.data.eval->size() >= 1,
          "its evaluation data have no sample; give some, or leave them out");
  require(within(job.engine.micro_batch, 1, kMaxSamples), "engine.micro_batch must be 1 to 2^31");
  require(within(job.global_batch, 0, kMaxSamples), "global_batch must be 0 to 2^31");
  require(within(job.epoch_size, 0, kMaxCount), "epoch_size must be 0 to 2^48");
  require(job.epoch_size == 0 || job.order, "epoch_size is that of an order of your own; fill in order, too");
  require(within(job.num_workers, 0, 1024), "num_workers must be 0 to 1024");
  require(within(job.length.epochs.value_or(1), 1, kMaxCount), "length.epochs must be 1 to 2^48");
  require(within(job.length.max_updates.value_or(1), 1, kMaxCount), "length.max_updates must be 1 to 2^48");
  require(job.length.max_seconds >= 0, "length.max_seconds must be 0 or more");
  require(job.length.stop_after.value_or(1) >= 1, "length.stop_after must be 1 or more");
  require_interval("eval.interval", job.eval.interval);
  require(job.eval.early_stop_patience >= 0, "eval.early_stop_patience must be 0 or more");
  require(job.eval.early_stop_patience == 0 || job.data.eval,
          "eval.early_stop_patience needs evaluation data");
  require_interval("save.interval", job.save.interval);
  require(job.save.keep >= 0, "save.keep must be 0 or more");
  require(job.save.grace_seconds >= 0, "save.grace_seconds must be 0 or more");
  require_reaction("trouble.on_not_finite", job.trouble.on_not_finite);
  require_reaction("trouble.on_spike", job.trouble.on_spike);
  require(job.trouble.max_rollbacks >= 0, "trouble.max_rollbacks must be 0 or more");
}

}  // namespace gradstep
