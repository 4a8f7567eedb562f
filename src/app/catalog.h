// Catalog: the recipes that a program knows. Recipes: one of each, fresh, with its options at their defaults.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradstep/app/app.h"

namespace gradstep {

struct Recipes {
  std::vector<std::pair<std::string, std::unique_ptr<ModelRecipe>>> models{};
  std::vector<std::pair<std::string, std::unique_ptr<DataRecipe>>> datasets{};

  // Throws ConfigError naming the known ones.
  [[nodiscard]] ModelRecipe& model(const std::string& name) const;
  [[nodiscard]] DataRecipe& dataset(const std::string& name) const;
};

class Catalog {
 public:
  void add_model(const std::string& name, std::function<std::unique_ptr<ModelRecipe>()> make);
  void add_dataset(const std::string& name, std::function<std::unique_ptr<DataRecipe>()> make);
  // A model and a data set under the same name, which share the recipe.
  void add_recipe(const std::string& name, std::function<std::shared_ptr<Recipe>()> make);

  // Throws std::logic_error for a program without a model or a data set, for names that are odd or taken, and
  // for a recipe beside others.
  void check() const;
  // The recipes' functions name themselves in what they throw.
  [[nodiscard]] Recipes make() const;
  [[nodiscard]] const std::vector<std::string>& model_names() const { return model_names_; }
  [[nodiscard]] const std::vector<std::string>& dataset_names() const { return dataset_names_; }
  // Whether the user chooses by --model and --dataset.
  [[nodiscard]] bool has_choice() const { return has_choice_; }

 private:
  std::vector<std::function<void(Recipes&)>> makers_;
  std::vector<std::string> model_names_;
  std::vector<std::string> dataset_names_;
  bool has_choice_ = false;
  int num_recipes_ = 0;
};

}  // namespace gradstep
