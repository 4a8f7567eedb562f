// no torch
// What an App holds. What it runs is above: src/commands/run_app.cpp.
#include "gradstep/app/app.h"

#include <utility>

#include "app/program.h"

namespace gradstep {

App::App(std::string name) : parts_(std::make_unique<Parts>()) { parts_->name = std::move(name); }
App::~App() = default;
App::App(App&&) noexcept = default;
App& App::operator=(App&&) noexcept = default;

App& App::add_model(const std::string& name, std::function<std::unique_ptr<ModelRecipe>()> make) {
  parts_->catalog.add_model(name, std::move(make));
  return *this;
}

App& App::add_dataset(const std::string& name, std::function<std::unique_ptr<DataRecipe>()> make) {
  parts_->catalog.add_dataset(name, std::move(make));
  return *this;
}

App& App::add_recipe(const std::string& name, std::function<std::shared_ptr<Recipe>()> make) {
  parts_->catalog.add_recipe(name, std::move(make));
  return *this;
}

}  // namespace gradstep
