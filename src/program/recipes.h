// The models and data sets of gradstep: each is one file here, and one line in recipes.cpp.
#pragma once

#include "app/program.h"
#include "gradstep/app/app.h"

namespace gradstep {

// --model mlp
class MlpRecipe final : public ModelRecipe {
 public:
  void flags(Flags& flags) override;
  [[nodiscard]] Task task(const DatasetSpec& spec) override;
  [[nodiscard]] ModelSize size(const DatasetSpec& spec) const override;
  [[nodiscard]] std::string describe(const DatasetSpec& spec) const override;
  [[nodiscard]] std::map<std::string, std::string> notes() const override;

  int64_t hidden = 256;
  double dropout = 0;
  double label_smoothing = 0;
};

// The data sets that load_dataset() knows by name.
class NamedData final : public DataRecipe {
 public:
  explicit NamedData(std::string name) : name_(std::move(name)) {}
  void flags(Flags& flags) override;
  [[nodiscard]] std::shared_ptr<const Dataset> load(Split part) override;
  [[nodiscard]] std::string folder() const override;
  void restored() override;

  std::string data_dir{};  // empty: default_data_dir(name)

 private:
  std::string name_;
};

// gradstep fetch
[[nodiscard]] ExtraCommand fetch_command();

// The program gradstep.
[[nodiscard]] App gradstep_app();

}  // namespace gradstep
