// Patterns, their text, and which parameter belongs to which group.
#include "step/param_groups.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/nearest.h"
#include "base/number_text.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

constexpr const char* kForm = "; write groups as 'embed.*:lr=0.1,wd=0; head.*:frozen'";

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

[[noreturn]] void refuse(const std::string& group, const std::string& why) {
  throw ConfigError("parameter group '" + group + "': " + why + kForm);
}

double number_of(const std::string& group, const std::string& setting, size_t begin) {
  double value = 0;
  const char* end = setting.data() + setting.size();
  const auto [stopped, error] = std::from_chars(setting.data() + begin, end, value);
  if (error != std::errc() || stopped != end || !(value >= 0) || !std::isfinite(value))
    refuse(group, "'" + setting + "' needs a number of at least 0");
  return value;
}

void read_setting(const std::string& text, const std::string& setting, ParamGroup& group) {
  if (setting == "frozen")
    group.frozen = true;
  else if (setting.starts_with("lr="))
    group.lr_factor = number_of(text, setting, 3);
  else if (setting.starts_with("wd="))
    group.weight_decay = number_of(text, setting, 3);
  else
    refuse(text, "'" + setting + "' is neither lr=, wd= nor frozen");
}

ParamGroup read_group(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) refuse(text, "has no settings behind a colon");
  ParamGroup group{.pattern = trimmed(text.substr(0, colon))};
  if (group.pattern.empty()) refuse(text, "has no pattern before the colon");
  const std::vector<std::string> settings = split(text.substr(colon + 1), ',');
  std::set<std::string> kinds;
  for (const std::string& setting : settings) {
    read_setting(text, setting, group);
    if (!kinds.insert(setting.substr(0, 3)).second)
      refuse(text, "'" + setting + "' comes after another of its kind");
  }
  if (group.frozen && settings.size() > 1) refuse(text, "a frozen group takes no other setting");
  return group;
}

// For a group that no parameter belongs to.
[[noreturn]] void refuse_empty(const ParamGroup& group, const std::vector<std::string>& names) {
  const auto matched =
      std::ranges::find_if(names, [&](const std::string& name) { return matches(group.pattern, name); });
  if (matched != names.end()) {
    throw ConfigError("parameter group " + group.pattern + ": every parameter it matches, such as " +
                      *matched +
                      ", belongs to an earlier group or needs no gradient; put this group first, or drop it");
  }
  std::vector<std::string> near = names;  // and the patterns of the modules around them
  for (const std::string& name : names) {
    for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1))
      near.push_back(name.substr(0, dot) + ".*");
  }
  std::string hint = did_you_mean(group.pattern, near);
  if (hint.empty() && !names.empty())
    hint = "; parameters have names such as " + names.front() + " and " + names.back();
  throw ConfigError("`param_groups`: " + group.pattern + " matches no parameter" + hint);
}

TrainedParameter settle(const std::string& name, const at::Tensor& tensor, const ParamGroup* group,
                        const OptimizerOptions& options) {
  TrainedParameter result{.name = name, .tensor = tensor, .decays = options.decay_all || tensor.dim() > 1};
  double weight_decay = options.weight_decay;
  if (group != nullptr) {
    result.lr_factor = group->lr_factor;
    weight_decay = group->weight_decay.value_or(weight_decay);
  }
  if (result.decays) result.weight_decay = weight_decay;
  return result;
}

}  // namespace

std::string to_string(const std::vector<ParamGroup>& groups) {
  std::string text;
  for (const ParamGroup& group : groups) {
    text += (text.empty() ? "" : "; ") + group.pattern + ":";
    if (group.frozen) {
      text += "frozen";
    } else {
      text += "lr=" + shortest(group.lr_factor);
      if (group.weight_decay) text += ",wd=" + shortest(*group.weight_decay);
    }
  }
  return text;
}

bool matches(const std::string& pattern, const std::string& name) {
  size_t p = 0, n = 0;
  size_t star = std::string::npos, resume = 0;  // the last star, and where what it stands for ends so far
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string::npos;
}

std::optional<size_t> group_of(const std::string& name, const std::vector<ParamGroup>& groups) {
  for (size_t i = 0; i < groups.size(); ++i) {
    if (matches(groups[i].pattern, name)) return i;
  }
  return std::nullopt;
}

std::vector<ParamGroup> parse_param_groups(const std::string& text) {
  std::vector<ParamGroup> groups;
  for (const std::string& part : split(text, ';')) {
    if (!part.empty()) groups.push_back(read_group(part));
  }
  return groups;
}

GroupedParameters apply_groups(const NamedTensors& parameters, const OptimizerOptions& options) {
  GroupedParameters result;
  std::vector<std::string> names;
  std::set<size_t> used, decaying;  // groups
  for (const auto& [name, tensor] : parameters) {
    names.push_back(name);
    const std::optional<size_t> index = group_of(name, options.groups);
    const ParamGroup* group = index ? &options.groups[*index] : nullptr;
    const bool frozen = group != nullptr && group->frozen;
    if (index && (frozen || tensor.requires_grad())) used.insert(*index);
    if (frozen || !tensor.requires_grad()) {
      result.frozen.emplace_back(name, tensor);
      continue;
    }
    result.trained.push_back(settle(name, tensor, group, options));
    if (index && result.trained.back().decays) decaying.insert(*index);
  }
  for (size_t i = 0; i < options.groups.size(); ++i) {
    const ParamGroup& group = options.groups[i];
    if (!used.contains(i)) refuse_empty(group, names);
    if (!group.frozen && group.weight_decay.value_or(0) > 0 && !decaying.contains(i)) {
      throw ConfigError(
          "parameter group " + group.pattern +
          ": its weight decay reaches none of its parameters, which have one dimension or none; "
          "drop it, or decay all parameters");
    }
  }
  if (!result.trained.empty()) return result;
  throw ConfigError(used.empty() ? "the model has no parameters to train; register some with requires_grad"
                                 : "the parameter groups freeze every parameter; leave one to train");
}

}  // namespace gradstep
