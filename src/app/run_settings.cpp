// All recipes' flags are known, so that help and config file do not depend on the choice of recipes. Only the
// flags of the chosen recipes take effect.
#include "app/run_settings.h"

#include <algorithm>

#include "app/program.h"
#include "base/utf8.h"
#include "config/config_file.h"
#include "config/flag_table.h"
#include "config/train_flags.h"
#include "gradstep/base/error.h"
#include "gradstep/base/version.h"

namespace gradstep {
namespace {

constexpr size_t kMaxShownText = 24;  // of a value in the plan

BoundFlag name_flag(const char* key, const char* help, const char* group, std::string& value,
                    const std::vector<std::string>& names) {
  Flags flags;
  flags.add(key, value, help + expectation(names) + ".").choices(names).group(group).metavar("NAME");
  return flags.bound().front();
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<std::string> names_of(const FlagInfo& flag) {
  std::vector<std::string> names = flag.aliases;
  names.insert(names.begin(), flag.key);
  return names;
}

// Names of flags that are no settings of a run, but belong to commands that take a recipe's flags too. Also
// the keys under which files name the recipes, which a program without a choice has as no flags.
bool is_reserved(const std::string& name) {
  return contains({"help", "dataset", "model", "predictions", "json"}, name) ||
         contains(names_of(config_flag()), name);
}

}  // namespace

RunSettings::RunSettings(const Catalog& catalog) : catalog_(catalog), recipes_(catalog.make()) {
  if (!catalog.model_names().empty()) config.model = catalog.model_names().front();
  if (!catalog.dataset_names().empty()) config.dataset = catalog.dataset_names().front();
  add_built_in();
  add_recipes();
}

void RunSettings::add_built_in() {
  if (catalog_.has_choice()) {
    add(name_flag("dataset", "Data set: ", kDataGroup, config.dataset, catalog_.dataset_names()), kDataGroup,
        "", "");
  }
  for (const Flag<RunConfig>& flag : train_flags()) {
    // The model's group follows the data's.
    const bool data_ends =
        !known_.empty() && known_.back().flag.info.group == kDataGroup && flag.info.group != kDataGroup;
    if (data_ends && catalog_.has_choice()) {
      add(name_flag("model", "Model to train: ", kModelGroup, config.model, catalog_.model_names()),
          kModelGroup, "", "");
    }
    add(bind_flag(flag, config), flag.info.group, "", "");
  }
}

void RunSettings::add_recipes() {
  for (auto& [name, recipe] : recipes_.datasets) {
    Flags flags;
    recipe->flags(flags);
    for (BoundFlag& flag : flags.bound()) add(std::move(flag), kDataGroup, "", name);
  }
  for (auto& [name, recipe] : recipes_.models) {
    Flags flags;
    recipe->flags(flags);
    for (BoundFlag& flag : flags.bound()) add(std::move(flag), kModelGroup, name, "");
  }
}

// Puts a recipe's flag after the choice of recipes and the flags of earlier recipes. A new group goes to the
// end, but the model's group follows the data's.
void RunSettings::add(BoundFlag flag, const std::string& group, const std::string& model,
                      const std::string& dataset) {
  if (flag.info.group.empty()) flag.info.group = group;
  if (!model.empty() || !dataset.empty()) refuse_taken_names(flag.info);
  Known* known = find(flag.info.key);
  if (known != nullptr) {
    known->shared.push_back(std::move(flag));
  } else {
    const auto place = place_of(flag.info.group, !model.empty() || !dataset.empty());
    std::string value = flag.get();
    known = &*known_.insert(place, {.flag = std::move(flag), .default_value = std::move(value)});
  }
  if (!model.empty()) known->models.push_back(model);
  if (!dataset.empty()) known->datasets.push_back(dataset);
}

// Only a flag of another recipe may have the same key: the two are one flag then.
void RunSettings::refuse_taken_names(const FlagInfo& flag) const {
  for (const std::string& name : names_of(flag)) {
    const std::string subject =
        "flag '" + flag.key + "' of a recipe" + (name == flag.key ? "" : ": its alias '" + name + "'");
    if (is_reserved(name)) throw std::logic_error(subject + " is a name that every program takes already");
    for (const Known& known : known_) {
      if (!contains(names_of(known.flag.info), name)) continue;
      const bool of_recipe = !known.models.empty() || !known.datasets.empty();
      if (of_recipe && known.flag.info.key == flag.key) continue;
      throw std::logic_error(subject + " is one of " + (of_recipe ? "another recipe" : "every run") +
                             " already" +
                             (name == known.flag.info.key ? "" : ", for '" + known.flag.info.key + "'"));
    }
  }
}

std::vector<RunSettings::Known>::iterator RunSettings::place_of(const std::string& group, bool of_recipe) {
  const auto behind_last = [&](auto fits) {
    const auto last = std::find_if(known_.rbegin(), known_.rend(), fits);
    return last == known_.rend() ? known_.end() : last.base();
  };
  const auto in_group = [&](const Known& known) { return known.flag.info.group == group; };
  if (of_recipe && (group == kDataGroup || group == kModelGroup)) {
    const auto place = behind_last([&](const Known& known) {
      const bool is_choice = known.flag.info.key == "dataset" || known.flag.info.key == "model";
      return in_group(known) && (is_choice || !known.models.empty() || !known.datasets.empty());
    });
    if (place != known_.end()) return place;
  }
  const auto place = behind_last(in_group);
  if (place != known_.end() || group != kModelGroup) return place;
  return behind_last([](const Known& known) { return known.flag.info.group == kDataGroup; });
}

RunSettings::Known* RunSettings::find(const std::string& key) {
  for (Known& known : known_) {
    if (known.flag.info.key == key) return &known;
  }
  return nullptr;
}

std::vector<FlagInfo> RunSettings::flags() const {
  std::vector<FlagInfo> infos;
  for (const Known& known : known_) infos.push_back(known.flag.info);
  return infos;
}

std::vector<FlagInfo> RunSettings::data_flags() const {
  std::vector<FlagInfo> infos;
  for (const Known& known : known_) {
    const bool of_data = !known.datasets.empty() || (!catalog_.has_choice() && !known.models.empty());
    if (of_data || known.flag.info.key == "dataset") infos.push_back(known.flag.info);
  }
  return infos;
}

void RunSettings::set(const std::string& key, const std::string& text, const std::string& where) {
  Known* const known = find(key);
  if (known == nullptr) throw std::logic_error("no flag " + key);
  if (!take(*known, text)) throw ConfigError(complaint(where, text, known->flag.info));
  known->given = where;
}

bool RunSettings::take(Known& known, const std::string& text) {
  bool taken = known.flag.set(text);
  for (BoundFlag& flag : known.shared) taken = flag.set(text) && taken;
  return taken;
}

bool RunSettings::applies(const Known& known) const {
  if (known.models.empty() && known.datasets.empty()) return true;
  return contains(known.models, config.model) || contains(known.datasets, config.dataset);
}

void RunSettings::validate() const {
  for (const Known& known : known_) {
    const FlagInfo& info = known.flag.info;
    if (!known.flag.valid()) throw ConfigError(complaint(flag_spelling(info.key), known.flag.get(), info));
    if (known.given.empty() || applies(known)) continue;
    const bool of_model = !known.models.empty();
    throw ConfigError(known.given + ": belongs to " + (of_model ? "--model " : "--dataset ") +
                      (of_model ? known.models.front() : known.datasets.front()) + ", not to " +
                      (of_model ? config.model : config.dataset) + "; leave it out");
  }
  gradstep::validate(config);
}

std::string RunSettings::model_options() const {
  std::string text;
  for (const Known& known : known_) {
    if (!contains(known.models, config.model)) continue;
    const std::string value = to_utf8(known.flag.get());
    if (value.empty() || value.size() > kMaxShownText || value.find('/') != std::string::npos) continue;
    text += (text.empty() ? "" : ", ") + known.flag.info.key + " " + value;
  }
  return text;
}

Settings RunSettings::texts(const std::map<std::string, std::string>& settled) const {
  Settings settings;
  for (const Known& known : known_) {
    if (!applies(known)) continue;
    const auto found = settled.find(known.flag.info.key);
    settings.push_back({.key = known.flag.info.key,
                        .text = to_utf8(found == settled.end() ? known.flag.get() : found->second),
                        .on_resume = known.flag.info.on_resume,
                        .default_text = known.default_value});
  }
  return settings;
}

std::string RunSettings::toml(const std::map<std::string, std::string>& settled) const {
  std::vector<std::pair<FlagInfo, std::string>> lines;
  for (const Known& known : known_) {
    const std::string& key = known.flag.info.key;
    // The two exclude each other, so the file has only the one in force.
    if (!applies(known) || (key == "grad_accum_steps" && config.global_batch_size)) continue;
    const auto found = settled.find(key);
    lines.emplace_back(known.flag.info, found == settled.end() ? known.flag.get() : found->second);
  }
  return config_toml(lines, program().name, std::string(version()), std::string(git_commit()));
}

std::map<std::string, std::string> RunSettings::rebuilding() const {
  std::map<std::string, std::string> texts{{"dataset", config.dataset}, {"model", config.model}};
  for (const Known& known : known_) {
    const std::string& key = known.flag.info.key;
    const bool of_recipe = !known.models.empty() || !known.datasets.empty();
    const bool of_numbers = key == "val_fraction" || key == "seed" || key == "deterministic";
    if ((of_recipe && applies(known)) || of_numbers) texts[key] = to_utf8(known.flag.get());
  }
  return texts;
}

void RunSettings::restore(const std::string& file, const std::map<std::string, std::string>& texts) {
  if (!catalog_.has_choice()) {
    const auto found = texts.find("model");
    if (found != texts.end() && found->second != config.model) {
      throw CheckpointError(file + ": is of the recipe " + found->second + ", not of " + config.model +
                            "; use the program that wrote it");
    }
  }
  for (const auto& [key, text] : texts) {
    Known* const known = find(key);
    if (known == nullptr || take(*known, text)) continue;
    throw CheckpointError(file + ": its " + key + " is \"" + text + "\", and must be " +
                          known->flag.info.expects + "; use another file");
  }
}

}  // namespace gradstep
