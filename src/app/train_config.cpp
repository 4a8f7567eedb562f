// Lays config file, environment and flags over the defaults, the later ones winning.
// no torch
#include "app/train_config.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include "app/program.h"
#include "base/nearest.h"
#include "config/config_file.h"
#include "config/path_text.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

constexpr char kPrefix[] = "GRADSTEP_";

// The settings in the environment; those of the config file's flag and unknown ones are told apart.
struct FromEnvironment {
  std::vector<GivenSetting> settings;
  std::optional<std::string> config_path;
  std::vector<std::string> warnings;
};

FromEnvironment read_environment(const Environment& environment, std::vector<FlagInfo> flags) {
  FromEnvironment result;
  flags.push_back(config_flag());
  std::vector<std::string> known;
  std::vector<std::pair<std::string, const FlagInfo*>> by_name;
  for (const FlagInfo& flag : flags) {
    by_name.emplace_back(variable_spelling(flag.key), &flag);
    for (const std::string& alias : flag.aliases) by_name.emplace_back(variable_spelling(alias), &flag);
  }
  for (const auto& entry : by_name) known.push_back(entry.first);
  for (const auto& [name, text] : environment) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      result.warnings.push_back(name + " is not a variable of " + program().name + " and is ignored" +
                                did_you_mean(name, known));
      continue;
    }
    if (text.empty()) throw ConfigError(name + " is empty; give it a value, or unset it");
    const FlagInfo& flag = *by_name[static_cast<size_t>(found - known.begin())].second;
    for (const GivenSetting& earlier : result.settings) {
      if (earlier.key != flag.key) continue;
      throw ConfigError(name + " and " + earlier.where + " are the same setting; unset one of them");
    }
    if (flag.key == config_flag().key) {
      result.config_path = text;
    } else {
      result.settings.push_back({flag.key, text, name});
    }
  }
  return result;
}

// All settings given, those that choose recipes first, and the winning ones last.
std::vector<GivenSetting> collect(const GivenFlags& given, const FromEnvironment& environment,
                                  const std::vector<FlagInfo>& keys) {
  std::optional<std::string> config_path = environment.config_path;
  std::vector<GivenSetting> from_flags;
  for (const auto& [key, text] : given) {
    if (key == config_flag().key) {
      config_path = text;
    } else {
      from_flags.push_back({key, text, flag_spelling(key)});
    }
  }
  std::vector<GivenSetting> all;
  if (config_path) all = read_config_file(expand_path(*config_path).value_or(*config_path), keys);
  all.insert(all.end(), environment.settings.begin(), environment.settings.end());
  all.insert(all.end(), from_flags.begin(), from_flags.end());
  std::ranges::stable_partition(all, is_choice, &GivenSetting::key);
  return all;
}

// The accumulation follows from the global batch size, so that giving both says two things.
void refuse_both(const RunConfig& config, const std::vector<GivenSetting>& settings) {
  if (!config.global_batch_size) return;
  std::string accumulation, global;
  for (const GivenSetting& setting : settings) {
    if (setting.key == "grad_accum_steps") accumulation = setting.where;
    if (setting.key == "global_batch_size") global = setting.where;
  }
  if (accumulation.empty()) return;
  throw ConfigError(accumulation + " and " + global +
                    " exclude each other; drop one of them (--global-batch-size none unsets it)");
}

// Flags that the other settings leave without effect.
std::vector<std::string> without_effect(const GivenFlags& given, const RunConfig& config) {
  const bool is_adamw = config.opt == "adamw";
  const bool rolls_back =
      config.on_nonfinite == OnTrouble::kRollBack || config.on_spike == OnTrouble::kRollBack;
  struct Rule {
    std::vector<std::string> keys;
    bool has_effect;
    std::string why;
  };
  const std::vector<Rule> rules{
      {{"momentum", "nesterov"}, !is_adamw, "with --opt adamw"},
      {{"beta1", "beta2", "eps"}, is_adamw, "with --opt " + config.opt},
      {{"min_lr"}, config.sched != "constant", "with --sched constant"},
      {{"spike_zscore", "spike_window"}, config.on_spike != OnTrouble::kOff, "without --on-spike"},
      {{"max_rollbacks"}, rolls_back, "unless --on-nonfinite or --on-spike is rollback"}};
  std::vector<std::string> warnings;
  for (const auto& [key, text] : given) {
    for (const Rule& rule : rules) {
      if (!rule.has_effect && std::ranges::find(rule.keys, key) != rule.keys.end())
        warnings.push_back(flag_spelling(key) + " has no effect " + rule.why);
    }
  }
  return warnings;
}

}  // namespace

Environment gradstep_environment() {
  Environment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const char* equals = std::strchr(*entry, '=');
    if (equals == nullptr || std::strncmp(*entry, kPrefix, sizeof kPrefix - 1) != 0) continue;
    result.emplace_back(std::string(static_cast<const char*>(*entry), equals), equals + 1);
  }
  return result;
}

std::vector<std::string> resolve_train_settings(const GivenFlags& given, const Environment& environment,
                                                RunSettings& settings) {
  FromEnvironment from_environment = read_environment(environment, settings.flags());
  const std::vector<GivenSetting> all = collect(given, from_environment, settings.flags());
  for (const GivenSetting& each : all) settings.set(each.key, each.text, each.where);
  refuse_both(settings.config, all);
  settings.validate();
  std::vector<std::string> warnings = std::move(from_environment.warnings);
  std::ranges::move(without_effect(given, settings.config), std::back_inserter(warnings));
  return warnings;
}

}  // namespace gradstep
