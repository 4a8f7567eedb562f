// App: a complete training program from recipes: train, eval, replay, ckpt, verify-resume and env, with
// flags, config file, environment variables, plan, help and exit codes. The program gradstep is one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "gradstep/config/flags.h"
#include "gradstep/data/dataset.h"
#include "gradstep/model/task.h"

namespace gradstep {

/// Sizes that can be told without building the model. 0: not known.
struct ModelSize {
  int64_t parameters = 0;
  int64_t activations = 0;  ///< numbers kept of one sample between forward and backward, at the least
};

/// A model to choose with --model.
class ModelRecipe {
 public:
  virtual ~ModelRecipe() = default;
  /// Adds the model's options.
  virtual void flags(Flags& /*flags*/) {}
  /// Builds the model on the CPU for data of this kind, with weights from the default generator, which is
  /// seeded before. Throws ConfigError for options or data that it cannot take.
  [[nodiscard]] virtual Task task(const DatasetSpec& spec) = 0;
  /// With it a run that cannot fit into memory is refused before it is built.
  [[nodiscard]] virtual ModelSize size(const DatasetSpec& /*spec*/) const { return {}; }
  /// For the plan: "mlp 784-256-10". Empty: the recipe's name.
  [[nodiscard]] virtual std::string describe(const DatasetSpec& /*spec*/) const { return {}; }
  /// What else a reader of the model file should know.
  [[nodiscard]] virtual std::map<std::string, std::string> notes() const { return {}; }
};

/// A data set to choose with --dataset.
class DataRecipe {
 public:
  virtual ~DataRecipe() = default;
  virtual void flags(Flags& /*flags*/) {}
  /// One part of the data; null for kTest if there is no test set. Both parts may be asked for at the same
  /// time, from two threads. Throws DataError with a cure.
  [[nodiscard]] virtual std::shared_ptr<const Dataset> load(Split part) = 0;
  /// Where the data lie: shown in the plan, and recorded as data_dir. Empty: nowhere in particular.
  [[nodiscard]] virtual std::string folder() const { return {}; }
  /// Called by eval and replay once the options are as the run had them: drops what is not there any more,
  /// such as a folder that was moved.
  virtual void restored() {}
};

/// A model and its data in one, for a program that has only these.
class Recipe {
 public:
  virtual ~Recipe() = default;
  virtual void flags(Flags& /*flags*/) {}
  /// Training and test data; without test data nothing is evaluated. Throws DataError with a cure.
  [[nodiscard]] virtual DatasetPair data() = 0;
  [[nodiscard]] virtual Task task(const DatasetSpec& spec) = 0;
  [[nodiscard]] virtual ModelSize size(const DatasetSpec& /*spec*/) const { return {}; }
  [[nodiscard]] virtual std::string describe(const DatasetSpec& /*spec*/) const { return {}; }
};

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
