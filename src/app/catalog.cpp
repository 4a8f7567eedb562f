// Keeps recipes by name. One recipe can be both a model and a data set.
#include "app/catalog.h"

#include <mutex>

#include "base/nearest.h"
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

}  // namespace

ModelRecipe& Recipes::model(const std::string& name) const { return find(models, "--model", name); }
DataRecipe& Recipes::dataset(const std::string& name) const { return find(datasets, "--dataset", name); }

void Catalog::add_model(const std::string& name, std::function<std::unique_ptr<ModelRecipe>()> make) {
  has_choice_ = true;
  model_names_.push_back(name);
  makers_.emplace_back(
      [name, make = std::move(make)](Recipes& recipes) { recipes.models.emplace_back(name, make()); });
}

void Catalog::add_dataset(const std::string& name, std::function<std::unique_ptr<DataRecipe>()> make) {
  has_choice_ = true;
  dataset_names_.push_back(name);
  makers_.emplace_back(
      [name, make = std::move(make)](Recipes& recipes) { recipes.datasets.emplace_back(name, make()); });
}

void Catalog::add_recipe(const std::string& name, std::function<std::shared_ptr<Recipe>()> make) {
  model_names_.push_back(name);
  dataset_names_.push_back(name);
  makers_.emplace_back([name, make = std::move(make)](Recipes& recipes) {
    const std::shared_ptr<Recipe> recipe = make();
    recipes.models.emplace_back(name, std::make_unique<ModelOf>(recipe));
    recipes.datasets.emplace_back(name, std::make_unique<DataOf>(recipe));
  });
}

Recipes Catalog::make() const {
  Recipes recipes;
  for (const auto& add : makers_) add(recipes);
  return recipes;
}

}  // namespace gradstep
