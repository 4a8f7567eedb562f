// RunSettings: all that a user can set for a run, with the options of the chosen recipes. Commands put what
// the user asked for into it; what a run settles, such as the precision, is never written back.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/catalog.h"
#include "config/run_config.h"
#include "gradstep/base/setting.h"
#include "gradstep/config/flags.h"

namespace gradstep {

// Whether the flag chooses a recipe: `dataset` and `model`.
[[nodiscard]] bool is_choice(const std::string& key);

class RunSettings {
 public:
  // Everything at its default. The catalog must outlive it.
  explicit RunSettings(const Catalog& catalog);
  RunSettings(const RunSettings&) = delete;
  RunSettings& operator=(const RunSettings&) = delete;

  // In the order of the help. A flag that several recipes share is listed once.
  [[nodiscard]] std::vector<FlagInfo> flags() const;
  // The flags that choose the data: `dataset` and the options of data recipes; if a recipe is model and data
  // in one, all of its options.
  [[nodiscard]] std::vector<FlagInfo> data_flags() const;

  // Throws ConfigError naming `where` (the flag, variable or line of the config file) for a text that the
  // flag does not take. REQUIRES: `key` is one of flags(), and model and dataset are set before the options
  // of recipes, since several recipes may have an option of one name.
  void set(const std::string& key, const std::string& text, const std::string& where);
  // Throws ConfigError for a setting given for a recipe that is not chosen, and for what RunConfig refuses.
  void validate() const;

  // The recipes that config.model and config.dataset name.
  [[nodiscard]] ModelRecipe& model() const { return recipes_.model(config.model); }
  [[nodiscard]] DataRecipe& dataset() const { return recipes_.dataset(config.dataset); }

  // The options of the chosen model, or of the recipe that is model and data in one, with their values:
  // "seq 64, width 64". Paths and long texts are left out.
  [[nodiscard]] std::string model_options() const;

  // Every setting that applies, with texts of `settled` in place of its own.
  // Bytes that are not UTF-8, which no file of a run can hold, become U+FFFD.
  [[nodiscard]] Settings texts(const std::map<std::string, std::string>& settled) const;
  // The text of config.toml, the same way.
  [[nodiscard]] std::string toml(const std::map<std::string, std::string>& settled) const;
  // From these a model file's reader builds model and data again and computes alike: names and options of the
  // recipes, val_fraction, seed, deterministic.
  [[nodiscard]] std::map<std::string, std::string> rebuilding() const;
  // The reverse: takes what texts() or rebuilding() gave; keys that are no flags here are left. Throws
  // CheckpointError naming `file` for a text that its flag does not take.
  void restore(const std::string& file, const std::map<std::string, std::string>& texts);

  RunConfig config{};

 private:
  // A flag, and the recipe that owns it; both names empty: every run has it.
  struct Owned {
    BoundFlag flag{};
    std::string model{};
    std::string dataset{};
    std::string default_value{};

    [[nodiscard]] bool of_recipe() const { return !model.empty() || !dataset.empty(); }
  };
  // One key, with the flag of each recipe that has it.
  struct Known {
    std::vector<Owned> owners{};
    std::string given{};  // where it was set; empty: it was not

    [[nodiscard]] const Owned& first() const { return owners.front(); }
    [[nodiscard]] const FlagInfo& info() const { return first().flag.info; }
  };

  void add_built_in();
  void add_recipes();
  void add(BoundFlag flag, const std::string& group, const std::string& model = {},
           const std::string& dataset = {});
  // Throws std::logic_error for a recipe's flag with a default that it does not take itself, and with a name
  // or alias that is taken.
  void refuse_faulty(const Owned& owned) const;
  [[nodiscard]] std::vector<Known>::iterator place_of(const std::string& group, bool of_recipe);
  [[nodiscard]] bool applies(const Owned& owned) const;
  // The flag of the chosen recipe, or of every run; null: the chosen recipes have none of this key.
  [[nodiscard]] const Owned* chosen(const Known& known) const;
  [[nodiscard]] const FlagInfo& info_in_force(const Known& known) const;
  // As the help has it, with the default of each recipe if they differ.
  [[nodiscard]] static FlagInfo listed(const Known& known);
  // Throws ConfigError if the chosen model and the chosen data set share a flag and begin with other values.
  void refuse_two_values(const Known& known) const;
  // Sets it in every recipe that takes the text; false: a chosen one does not, or none does.
  [[nodiscard]] bool take(const Known& known, const std::string& text) const;
  Known* find(const std::string& key);

  const Catalog& catalog_;
  Recipes recipes_;
  std::vector<Known> known_;
};

}  // namespace gradstep
