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
#include "gradstep/run/job.h"

namespace gradstep {

class SinkList;

/// Sizes of a model that are known before it is built. 0: not known.
struct ModelSize {
  int64_t parameters = 0;   ///< numbers in all parameters
  int64_t activations = 0;  ///< numbers kept for one sample between forward and backward, at the least
};

/// A model that users choose with --model: its options, and how to build it.
class ModelRecipe {
 public:
  virtual ~ModelRecipe() = default;
  /// Adds the options of the model.
  virtual void flags(Flags& /*flags*/) {}
  /// Builds the model on the CPU for data of this kind, with weights from the default generator, which the
  /// program has seeded. Throws ConfigError for options or data that it cannot take.
  [[nodiscard]] virtual Task task(const DatasetSpec& spec) = 0;
  /// The size of the model, so that a run that cannot fit into memory is refused before the model is built.
  [[nodiscard]] virtual ModelSize size(const DatasetSpec& /*spec*/) const { return {}; }
  /// The line of the plan: "mlp 784-256-10". Empty: the name of the recipe.
  [[nodiscard]] virtual std::string describe(const DatasetSpec& /*spec*/) const { return {}; }
  /// Keys and texts that model files record besides the options.
  [[nodiscard]] virtual std::map<std::string, std::string> notes() const { return {}; }
  /// Changes the job of a run after the flags have filled it in: an optimizer of your own
  /// (engine.make_optimizer), a schedule (engine.schedule.function), an order (order, epoch_size), options
  /// and policies that have no flag. Called before every run, new or resumed, so it must do the same each
  /// time. A resume compares what it changes in the engine options and the order, and settings that it adds
  /// to job.settings. It must leave task, data and engine.precision as they are: eval and replay do not call
  /// it. The flags were checked before: for a schedule of your own, --warmup-steps must still fit into the
  /// run.
  virtual void adjust(Job& /*job*/) {}
  /// Adds reports of your own for a run in the folder `output_dir`. The run has console, metrics.jsonl and
  /// those of --report-to already.
  virtual void add_sinks(SinkList& /*sinks*/, const std::string& /*output_dir*/) {}
};

/// A data set that users choose with --dataset: its options, and how to load it.
class DataRecipe {
 public:
  virtual ~DataRecipe() = default;
  /// Adds the options of the data set.
  virtual void flags(Flags& /*flags*/) {}
  /// Loads one part of the data; null for kEval if there is none. Two threads may ask for the two parts at
  /// the same time. Throws DataError that says what to do.
  [[nodiscard]] virtual std::shared_ptr<const Dataset> load(Split part) = 0;
  /// The folder of the data, which the plan shows and runs record as data_dir. Empty: no folder.
  [[nodiscard]] virtual std::string folder() const { return {}; }
  /// Called by eval and replay after the options got the values that the run had: drops those that do not
  /// hold any more, such as a folder that was moved.
  virtual void restored() {}
};

/// A model and its data in one, for a program that has only these.
class Recipe {
 public:
  virtual ~Recipe() = default;
  /// Adds the options of model and data.
  virtual void flags(Flags& /*flags*/) {}
  /// Loads training and evaluation data, the same samples each time; without the latter nothing is evaluated.
  /// Throws DataError that says what to do.
  [[nodiscard]] virtual DatasetPair data() = 0;
  /// As ModelRecipe::task().
  [[nodiscard]] virtual Task task(const DatasetSpec& spec) = 0;
  /// As ModelRecipe::size().
  [[nodiscard]] virtual ModelSize size(const DatasetSpec& /*spec*/) const { return {}; }
  /// As ModelRecipe::describe().
  [[nodiscard]] virtual std::string describe(const DatasetSpec& /*spec*/) const { return {}; }
  /// As ModelRecipe::notes().
  [[nodiscard]] virtual std::map<std::string, std::string> notes() const { return {}; }
  /// As ModelRecipe::adjust().
  virtual void adjust(Job& /*job*/) {}
  /// As ModelRecipe::add_sinks().
  virtual void add_sinks(SinkList& /*sinks*/, const std::string& /*output_dir*/) {}
  /// As DataRecipe::folder().
  [[nodiscard]] virtual std::string folder() const { return {}; }
  /// As DataRecipe::restored().
  virtual void restored() {}
};

/// A training program made of recipes: train, eval, replay, ckpt, verify-resume and env, with flags, config
/// file, environment variables, plan, help and exit codes. Recipes are registered by name, in the order of
/// the help; the first model and the first data set are the defaults. A name is one line of UTF-8 without /,
/// and no two models or data sets have the same. The program needs a model and a data set, or one Recipe and
/// nothing else; run() refuses others. An exception of a function of a recipe, or of its task or data set,
/// that is no gradstep::Error ends the program with exit code 1 and a line that names the function.
class App {
 public:
  /// A program without recipes. `name` is its name in messages and help.
  explicit App(std::string name);
  ~App();
  /// Moves the program; only destruction and assignment make sense for the one moved from: run() returns 1.
  App(App&&) noexcept;
  /// Likewise.
  App& operator=(App&&) noexcept;

  /// Adds a model for --model. `Type` is a ModelRecipe with a default constructor.
  template <class Type>
  App& model(const std::string& name) {
    static_assert(std::is_base_of_v<ModelRecipe, Type>);
    return add_model(name, [] { return std::make_unique<Type>(); });
  }
  /// Adds a data set for --dataset. `Type` is a DataRecipe; its constructor gets `arguments` each time.
  template <class Type, class... Arguments>
  App& dataset(const std::string& name, Arguments... arguments) {
    static_assert(std::is_base_of_v<DataRecipe, Type>);
    return add_dataset(name, [arguments...] { return std::make_unique<Type>(arguments...); });
  }
  /// Adds a model with its data, the only one of the program: there is no --model and no --dataset then. Runs
  /// record `name`, and eval and replay refuse files of a recipe with another one, so it should not change.
  template <class Type>
  App& recipe(const std::string& name) {
    static_assert(std::is_base_of_v<Recipe, Type>);
    return add_recipe(name, [] { return std::make_shared<Type>(); });
  }

  /// Runs the command that the arguments name, and returns the exit code of the process (ExitCode). Prints
  /// errors to stderr and throws nothing. Changes what belongs to the process: signal handlers, threads,
  /// memory limit. Call it once.
  int run(int argc, char** argv);

 private:
  friend struct AppAccess;
  struct Parts;
  App& add_model(const std::string& name, std::function<std::unique_ptr<ModelRecipe>()> make);
  App& add_dataset(const std::string& name, std::function<std::unique_ptr<DataRecipe>()> make);
  App& add_recipe(const std::string& name, std::function<std::shared_ptr<Recipe>()> make);

  std::unique_ptr<Parts> parts_;
};

/// The main function of a program with one recipe:
///
///     int main(int argc, char** argv) { return gradstep::app_main<MyRecipe>(argc, argv); }
///
/// Files and folders of its runs know the recipe by `recipe`, whatever the file of the program is called.
/// Messages and help speak of the program by its file name, argv[0].
template <class Type>
int app_main(int argc, char** argv, const std::string& recipe = "model") {
  const std::string path = argc > 0 ? argv[0] : "train";
  return App(path.substr(path.rfind('/') + 1)).recipe<Type>(recipe).run(argc, argv);
}

}  // namespace gradstep
