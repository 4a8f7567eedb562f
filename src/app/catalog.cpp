// Keeps recipes by name. One recipe can be both a model and a data set.
#include "app/catalog.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>

#include "app/named_recipes.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

class ModelOf final : public ModelRecipe {
 public:
  explicit ModelOf(std::shared_ptr<Recipe> recipe) : recipe_(std::move(recipe)) {}
  void flags(Flags& flags) override { recipe_->flags(flags); }
  Task task(const DatasetSpec& spec) override { return recipe_->task(spec); }
  [[nodiscard]] ModelSize size(const DatasetSpec& spec) const override { return recipe_->size(spec); }
  [[nodiscard]] std::string describe(const DatasetSpec& spec) const override {
    return recipe_->describe(spec);
  }
  [[nodiscard]] std::map<std::string, std::string> notes() const override { return recipe_->notes(); }
  void adjust(Job& job) override { recipe_->adjust(job); }
  void add_sinks(SinkList& sinks, const std::string& output_dir) override {
    recipe_->add_sinks(sinks, output_dir);
  }

 private:
  std::shared_ptr<Recipe> recipe_;
};

// Both parts come from one call.
class DataOf final : public DataRecipe {
 public:
  explicit DataOf(std::shared_ptr<Recipe> recipe) : recipe_(std::move(recipe)) {}
  std::shared_ptr<const Dataset> load(Split part) override {
    const std::lock_guard lock(mutex_);
    if (!data_.train) data_ = recipe_->data();
    return part == Split::kTrain ? data_.train : data_.eval;
  }
  [[nodiscard]] std::string folder() const override { return recipe_->folder(); }
  void restored() override { recipe_->restored(); }

 private:
  std::shared_ptr<Recipe> recipe_;
  std::mutex mutex_;
  DatasetPair data_;
};

template <class Type>
Type& find(const std::vector<std::pair<std::string, std::unique_ptr<Type>>>& all, const std::string& flag,
           const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [each, recipe] : all) {
    if (each == name) return *recipe;
    names.push_back(each);
  }
  throw ConfigError(flag + " " + name + ": is not known here" + known_names(name, names));
}

// Folders, files and messages have the name of a recipe.
bool is_name(const std::string& name) {
  const auto is_odd = [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '/'; };
  return !name.empty() && is_utf8(name) && std::ranges::none_of(name, is_odd);
}

void check_names(const std::string& what, const std::vector<std::string>& names) {
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (!is_name(*name))
      throw std::logic_error("a " + what + " is named '" + *name +
                             "'; a name is one line of UTF-8 without /, and not empty");
    if (std::find(names.begin(), name, *name) != name)
      throw std::logic_error("two are registered as " + what + " '" + *name + "'; rename one");
  }
}

}  // namespace

ModelRecipe& Recipes::model(const std::string& name) const { return find(models, "--model", name); }
DataRecipe& Recipes::dataset(const std::string& name) const { return find(datasets, "--dataset", name); }

void Catalog::add_model(const std::string& name, std::function<std::unique_ptr<ModelRecipe>()> make) {
  has_choice_ = true;
  model_names_.push_back(name);
  makers_.emplace_back([name, make = std::move(make)](Recipes& recipes) {
    auto recipe = named("the constructor", "model '" + name + "'", make);
    recipes.models.emplace_back(name, named_model(name, std::move(recipe)));
  });
}

void Catalog::add_dataset(const std::string& name, std::function<std::unique_ptr<DataRecipe>()> make) {
  has_choice_ = true;
  dataset_names_.push_back(name);
  makers_.emplace_back([name, make = std::move(make)](Recipes& recipes) {
    auto recipe = named("the constructor", "data set '" + name + "'", make);
    recipes.datasets.emplace_back(name, named_data(name, "load()", std::move(recipe)));
  });
}

void Catalog::add_recipe(const std::string& name, std::function<std::shared_ptr<Recipe>()> make) {
  ++num_recipes_;
  model_names_.push_back(name);
  dataset_names_.push_back(name);
  makers_.emplace_back([name, make = std::move(make)](Recipes& recipes) {
    const std::shared_ptr<Recipe> recipe = named("the constructor", "model '" + name + "'", make);
    recipes.models.emplace_back(name, named_model(name, std::make_unique<ModelOf>(recipe)));
    recipes.datasets.emplace_back(name, named_data(name, "data()", std::make_unique<DataOf>(recipe)));
  });
}

void Catalog::check() const {
  if (model_names_.empty() || dataset_names_.empty()) {
    throw std::logic_error(std::string("the program has no ") +
                           (model_names_.empty() ? "model" : "data set") +
                           "; register a model and a data set, or a recipe");
  }
  if (num_recipes_ > 0 && (has_choice_ || num_recipes_ > 1))
    throw std::logic_error("a recipe must be the only one of its program; register models and data sets");
  check_names("model", model_names_);
  check_names("data set", dataset_names_);
}

Recipes Catalog::make() const {
  Recipes recipes;
  for (const auto& add : makers_) add(recipes);
  return recipes;
}

}  // namespace gradstep
