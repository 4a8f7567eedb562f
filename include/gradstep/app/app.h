// App: a complete training program from recipes: train, eval, replay, ckpt, verify-resume and env, with
// flags, config file, environment variables, plan, help and exit codes. The program gradstep is one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "gradstep/app/recipe.h"

namespace gradstep {

struct ExtraCommand;  // a command of the program's own; private for now

/// Registers recipes by name, in the order of the help; the first of a kind is the default.
class App {
 public:
  /// `name`: of the program, in its messages and its help.
  explicit App(std::string name);
  ~App();
  App(App&&) noexcept;
  App& operator=(App&&) noexcept;

  /// A model for --model. `Type` is a ModelRecipe with a default constructor.
  template <class Type>
  App& model(const std::string& name) {
    static_assert(std::is_base_of_v<ModelRecipe, Type>);
    return add_model(name, [] { return std::make_unique<Type>(); });
  }
  /// A data set for --dataset. `Type` is a DataRecipe; `arguments` are given to its constructor each time.
  template <class Type, class... Arguments>
  App& dataset(const std::string& name, Arguments... arguments) {
    static_assert(std::is_base_of_v<DataRecipe, Type>);
    return add_dataset(name, [arguments...] { return std::make_unique<Type>(arguments...); });
  }
  /// A model with its data, the only one of the program: there is no --model and no --dataset.
  template <class Type>
  App& recipe(const std::string& name) {
    static_assert(std::is_base_of_v<Recipe, Type>);
    return add_recipe(name, [] { return std::make_shared<Type>(); });
  }
  App& command(ExtraCommand command);

  /// Runs the command that the arguments name and returns the exit code of the process; no exception comes
  /// out. Changes what belongs to the process: signal handlers, threads, memory limit. Call it once.
  int run(int argc, char** argv);

  struct Parts;
  [[nodiscard]] const Parts& parts() const { return *parts_; }

 private:
  App& add_model(const std::string& name, std::function<std::unique_ptr<ModelRecipe>()> make);
  App& add_dataset(const std::string& name, std::function<std::unique_ptr<DataRecipe>()> make);
  App& add_recipe(const std::string& name, std::function<std::shared_ptr<Recipe>()> make);

  std::unique_ptr<Parts> parts_;
};

/// int main(int argc, char** argv) { return gradstep::app_main<MyRecipe>(argc, argv); }
/// The name of the program in its messages is that of argv[0].
template <class Type>
int app_main(int argc, char** argv) {
  const std::string path = argc > 0 ? argv[0] : "train";
  const std::string name = path.substr(path.rfind('/') + 1);
  return App(name).recipe<Type>(name).run(argc, argv);
}

}  // namespace gradstep
