// All recipes' flags are known, so that help and config file do not depend on the choice of recipes. Only the
// flags of the chosen recipes take effect.
#include "app/run_settings.h"

#include <algorithm>
#include <filesystem>

#include "app/make_job.h"
#include "app/program.h"
#include "base/utf8.h"
#include "checkpoint/model_metadata.h"
#include "config/config_file.h"
#include "config/flag_table.h"
#include "config/train_flags.h"
#include "gradstep/base/error.h"
#include "gradstep/base/version.h"
#include "run/best_tracker.h"

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

// Of the data that a model was built for.
bool is_shape_key(const std::string& key) {
  return key == "input_shape" || key == "num_classes" || key == "vocab_size";
}

// Names of flags that are no settings of a run, but belong to commands that take a recipe's flags too. Also
// the keys under which files name the recipes, which a program without a choice has as no flags, and those
// under which they describe model and data.
bool is_reserved(const std::string& name) {
  return contains({"help", "predictions", "force", "json"}, name) || is_choice(name) || is_shape_key(name) ||
         is_file_key(name) || contains(names_of(config_flag()), name);
}

// The text of a recipe's flag as files of a run have it: a path must mean the same from another folder.
std::string recorded_text(const BoundFlag& flag) {
  std::string text = flag.get();
  if (!flag.info.is_path || text.empty()) return text;
  std::error_code ignored;
  return std::filesystem::absolute(text, ignored).lexically_normal().string();
}

}  // namespace

bool is_choice(const std::string& key) { return key == "dataset" || key == "model"; }

RunSettings::RunSettings(const Catalog& catalog) : catalog_(catalog), recipes_(catalog.make()) {
  if (!catalog.model_names().empty()) config.model = catalog.model_names().front();
  if (!catalog.dataset_names().empty()) config.dataset = catalog.dataset_names().front();
  add_built_in();
  add_recipes();
}

void RunSettings::add_built_in() {
  if (catalog_.has_choice()) {
    add(name_flag("dataset", "Data set: ", kDataGroup, config.dataset, catalog_.dataset_names()), kDataGroup);
  }
  for (const Flag<RunConfig>& flag : train_flags()) {
    // The model's group follows the data's.
    const bool data_ends =
        !known_.empty() && known_.back().info().group == kDataGroup && flag.info.group != kDataGroup;
    if (data_ends && catalog_.has_choice()) {
      add(name_flag("model", "Model to train: ", kModelGroup, config.model, catalog_.model_names()),
          kModelGroup);
    }
    add(bind_flag(flag, config), flag.info.group);
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
  std::string value = flag.get();
  Owned owned{.flag = std::move(flag), .model = model, .dataset = dataset, .default_value = std::move(value)};
  if (owned.of_recipe()) refuse_faulty(owned);
  if (Known* const known = find(owned.flag.info.key)) {
    known->owners.push_back(std::move(owned));
    return;
  }
  const auto place = place_of(owned.flag.info.group, owned.of_recipe());
  known_.insert(place, {.owners = {std::move(owned)}});
}

// Only a flag of another recipe may have the same key. Each recipe has its own default and range then.
void RunSettings::refuse_faulty(const Owned& owned) const {
  const FlagInfo& flag = owned.flag.info;
  if (!owned.flag.valid()) {
    throw std::logic_error("flag '" + flag.key + "' of a recipe: its default is '" + owned.default_value +
                           "', and must be " + flag.expects);
  }
  for (const std::string& name : names_of(flag)) {
    const std::string subject =
        "flag '" + flag.key + "' of a recipe" + (name == flag.key ? "" : ": its alias '" + name + "'");
    if (is_reserved(name)) throw std::logic_error(subject + " is a name that every program takes already");
    for (const Known& known : known_) {
      if (!contains(names_of(known.info()), name)) continue;
      const bool of_recipe = known.first().of_recipe();
      if (of_recipe && known.info().key == flag.key) {
        if (known.info().kind == flag.kind) continue;
        throw std::logic_error(subject + " has another kind of value in another recipe; rename one of them");
      }
      throw std::logic_error(subject + " is one of " + (of_recipe ? "another recipe" : "every run") +
                             " already" +
                             (name == known.info().key ? "" : ", for '" + known.info().key + "'"));
    }
  }
}

std::vector<RunSettings::Known>::iterator RunSettings::place_of(const std::string& group, bool of_recipe) {
  const auto behind_last = [&](auto fits) {
    const auto last = std::find_if(known_.rbegin(), known_.rend(), fits);
    return last == known_.rend() ? known_.end() : last.base();
  };
  const auto in_group = [&](const Known& known) { return known.info().group == group; };
  if (of_recipe && (group == kDataGroup || group == kModelGroup)) {
    const auto place = behind_last([&](const Known& known) {
      return in_group(known) && (is_choice(known.info().key) || known.first().of_recipe());
    });
    if (place != known_.end()) return place;
  }
  const auto place = behind_last(in_group);
  if (place != known_.end() || group != kModelGroup) return place;
  return behind_last([](const Known& known) { return known.info().group == kDataGroup; });
}

RunSettings::Known* RunSettings::find(const std::string& key) {
  for (Known& known : known_) {
    if (known.info().key == key) return &known;
  }
  return nullptr;
}

FlagInfo RunSettings::listed(const Known& known) {
  FlagInfo info = known.info();
  const auto differs = [&](const Owned& owned) { return owned.flag.info.default_text != info.default_text; };
  if (std::ranges::none_of(known.owners, differs)) return info;
  std::string texts;
  for (const Owned& owned : known.owners) {
    texts += (texts.empty() ? "" : ", ") + owned.flag.info.default_text + " for " +
             (owned.model.empty() ? owned.dataset : owned.model);
  }
  info.default_text = std::move(texts);
  return info;
}

std::vector<FlagInfo> RunSettings::flags() const {
  std::vector<FlagInfo> infos;
  for (const Known& known : known_) infos.push_back(listed(known));
  return infos;
}

std::vector<FlagInfo> RunSettings::data_flags() const {
  std::vector<FlagInfo> infos;
  for (const Known& known : known_) {
    const auto is_of_data = [&](const Owned& owned) {
      return !owned.dataset.empty() || (!catalog_.has_choice() && !owned.model.empty());
    };
    if (std::ranges::any_of(known.owners, is_of_data) || known.info().key == "dataset")
      infos.push_back(known.info());
  }
  return infos;
}

void RunSettings::set(const std::string& key, const std::string& text, const std::string& where) {
  Known* const known = find(key);
  if (known == nullptr) throw std::logic_error("no flag " + key);
  if (!take(*known, text)) throw ConfigError(complaint(where, text, info_in_force(*known)));
  known->given = where;
}

bool RunSettings::take(const Known& known, const std::string& text) const {
  bool taken_by_any = false, refused = false;
  for (const Owned& owned : known.owners) {
    const bool taken = owned.flag.set(text);
    taken_by_any = taken_by_any || taken;
    refused = refused || (!taken && applies(owned));
  }
  return taken_by_any && !refused;
}

bool RunSettings::applies(const Owned& owned) const {
  if (!owned.of_recipe()) return true;
  return owned.model.empty() ? owned.dataset == config.dataset : owned.model == config.model;
}

const RunSettings::Owned* RunSettings::chosen(const Known& known) const {
  for (const Owned& owned : known.owners) {
    if (applies(owned)) return &owned;
  }
  return nullptr;
}

const FlagInfo& RunSettings::info_in_force(const Known& known) const {
  const Owned* const owned = chosen(known);
  return owned == nullptr ? known.info() : owned->flag.info;
}

void RunSettings::refuse_two_values(const Known& known) const {
  const Owned* const one = chosen(known);
  for (const Owned& owned : known.owners) {
    if (!applies(owned) || owned.flag.get() == one->flag.get()) continue;
    throw ConfigError(flag_spelling(known.info().key) + ": is " + one->flag.get() + " by default for " +
                      one->dataset + ", and " + owned.flag.get() + " for " + owned.model +
                      "; give the value for both");
  }
}

void RunSettings::validate() const {
  for (const Known& known : known_) {
    const Owned* const owned = chosen(known);
    if (owned != nullptr) {
      const BoundFlag& flag = owned->flag;
      if (!flag.valid()) throw ConfigError(complaint(flag_spelling(flag.info.key), flag.get(), flag.info));
      refuse_two_values(known);
    } else if (!known.given.empty()) {
      const std::string& model = known.first().model;
      throw ConfigError(known.given + ": belongs to " +
                        (model.empty() ? "--dataset " + known.first().dataset : "--model " + model) +
                        ", not to " + (model.empty() ? config.dataset : config.model) + "; leave it out");
    }
  }
  gradstep::validate(config);
  validate_engine(config, config.max_steps.value_or(0));
  check_averages(config.best_metric, config.ema > 0);
}

std::string RunSettings::model_options() const {
  std::string text;
  for (const Known& known : known_) {
    const auto owned = std::ranges::find(known.owners, config.model, &Owned::model);
    if (owned == known.owners.end()) continue;
    const std::string value = to_utf8(owned->flag.get());
    if (value.empty() || value.size() > kMaxShownText || value.find('/') != std::string::npos) continue;
    text += (text.empty() ? "" : ", ") + known.info().key + " " + value;
  }
  return text;
}

Settings RunSettings::texts(const std::map<std::string, std::string>& settled) const {
  Settings settings;
  for (const Known& known : known_) {
    const Owned* const owned = chosen(known);
    if (owned == nullptr) continue;
    const FlagInfo& info = owned->flag.info;
    const auto found = settled.find(info.key);
    settings.push_back({.key = info.key,
                        .text = to_utf8(found == settled.end() ? recorded_text(owned->flag) : found->second),
                        .on_resume = info.on_resume,
                        .default_text = owned->default_value});
  }
  return settings;
}

std::string RunSettings::toml(const std::map<std::string, std::string>& settled) const {
  std::vector<std::pair<FlagInfo, std::string>> lines;
  for (const Known& known : known_) {
    const std::string& key = known.info().key;
    const Owned* const owned = chosen(known);
    // The two exclude each other, so the file has only the one in force.
    if (owned == nullptr || (key == "grad_accum_steps" && config.global_batch_size)) continue;
    if (owned->flag.info.of_one_start) continue;
    const auto found = settled.find(key);
    std::string text = found == settled.end() ? recorded_text(owned->flag) : found->second;
    if (!text.empty()) lines.emplace_back(owned->flag.info, std::move(text));  // empty: not given
  }
  return config_toml(lines, program().name, std::string(version()), std::string(git_commit()));
}

std::map<std::string, std::string> RunSettings::rebuilding() const {
  std::map<std::string, std::string> texts{{"dataset", config.dataset}, {"model", config.model}};
  for (const Known& known : known_) {
    const std::string& key = known.info().key;
    const Owned* const owned = chosen(known);
    const bool of_numbers = key == "val_fraction" || key == "seed" || key == "deterministic";
    if (owned != nullptr && (owned->of_recipe() || of_numbers))
      texts[key] = to_utf8(recorded_text(owned->flag));
  }
  return texts;
}

void RunSettings::restore(const std::string& file, const std::map<std::string, std::string>& texts) {
  const auto take_each = [&](bool choice) {
    for (const auto& [key, text] : texts) {
      const Known* const known = find(key);
      if (known == nullptr || is_choice(key) != choice || take(*known, text)) continue;
      throw CheckpointError(file + ": its " + key + " is \"" + text + "\", and must be " +
                            info_in_force(*known).expects + "; use another file");
    }
  };
  take_each(true);
  take_each(false);
}

}  // namespace gradstep
