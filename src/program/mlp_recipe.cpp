// The mlp: its options, its sizes, its task.
#include "config/flag_table.h"
#include "gradstep/base/error.h"
#include "model/mlp.h"
#include "program/recipes.h"

namespace gradstep {
namespace {

int64_t num_inputs(const DatasetSpec& spec) {
  int64_t product = 1;
  for (const int64_t size : spec.input_shape) product *= size;
  return product;
}

class MlpRecipe final : public ModelRecipe {
 public:
  void flags(Flags& flags) override;
  [[nodiscard]] Task task(const DatasetSpec& spec) override;
  [[nodiscard]] ModelSize size(const DatasetSpec& spec) const override;
  [[nodiscard]] std::string describe(const DatasetSpec& spec) const override;
  [[nodiscard]] std::map<std::string, std::string> notes() const override;

 private:
  int64_t hidden_ = 256;
  double dropout_ = 0;
  double label_smoothing_ = 0;
};

void MlpRecipe::flags(Flags& flags) {
  flags.add("hidden", hidden_, "Width of the hidden layer.").range(1, 1'000'000);
  flags.add("dropout", dropout_, "Probability that a hidden unit is dropped in training.").below(1);
  flags
      .add("label_smoothing", label_smoothing_,
           "Share of the target that is spread evenly over the classes, in training only.")
      .range(0, 1)
      .group("Optimizer")
      .on_resume(OnResume::kWarned);
}

Task MlpRecipe::task(const DatasetSpec& spec) {
  if (spec.num_classes < 1) {
    throw ConfigError("--model mlp tells classes apart, and the data set " + spec.name +
                      " has none; choose another model");
  }
  return mlp_task({.num_inputs = num_inputs(spec),
                   .hidden = hidden_,
                   .num_classes = spec.num_classes,
                   .dropout = dropout_},
                  label_smoothing_);
}

ModelSize MlpRecipe::size(const DatasetSpec& spec) const {
  return {.parameters = hidden_ * (num_inputs(spec) + 1) + spec.num_classes * (hidden_ + 1),
          .activations = hidden_};
}

std::string MlpRecipe::describe(const DatasetSpec& spec) const {
  return "mlp " + std::to_string(num_inputs(spec)) + "-" + std::to_string(hidden_) + "-" +
         std::to_string(spec.num_classes);
}

std::map<std::string, std::string> MlpRecipe::notes() const {
  return {{"input", "((byte / 255) - 0.5) / 0.5, flattened"}};
}

}  // namespace

void add_mlp(App& app) { app.model<MlpRecipe>("mlp"); }

}  // namespace gradstep
