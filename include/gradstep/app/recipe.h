// Recipes: a model, a data set, or both, with their options. App makes a whole program of them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

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

}  // namespace gradstep
