// One entry a model.
#include "gradstep/model/registry.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/nearest.h"
#include "gradstep/base/error.h"
#include "gradstep/model/mlp.h"
#include "gradstep/model/normalize.h"
#include "gradstep/model/tasks.h"

namespace gradstep {
namespace {

int64_t num_inputs(const DatasetSpec& spec) {
  return std::accumulate(spec.input_shape.begin(), spec.input_shape.end(), int64_t{1}, std::multiplies<>());
}

Task make_mlp(const ModelOptions& options, const DatasetSpec& spec) {
  Mlp mlp(MlpOptions{.num_inputs = num_inputs(spec),
                     .hidden = options.hidden,
                     .num_classes = spec.num_classes,
                     .dropout = options.dropout});
  Task task = classification_task(mlp, {.num_classes = spec.num_classes,
                                        .label_smoothing = options.label_smoothing,
                                        .all_targets_count = true});
  task.prepare = [](const Batch& batch) {
    Batch prepared = batch;
    prepared.inputs = normalize_bytes(batch.inputs).flatten(1);
    return prepared;
  };
  return task;
}

void check_name(const std::string& name) {
  const std::vector<std::string> names = model_names();
  if (std::ranges::find(names, name) != names.end()) return;
  throw ConfigError("--model " + name + ": unknown model" + known_names(name, names));
}

}  // namespace

std::vector<std::string> model_names() { return {"mlp"}; }

Task make_task(const ModelOptions& options, const DatasetSpec& spec) {
  check_name(options.name);
  return make_mlp(options, spec);
}

ModelSize model_size(const ModelOptions& options, const DatasetSpec& spec) {
  check_name(options.name);
  return {.parameters = options.hidden * (num_inputs(spec) + 1) + spec.num_classes * (options.hidden + 1),
          .activations = options.hidden};
}

std::string describe_model(const ModelOptions& options, const DatasetSpec& spec) {
  check_name(options.name);
  return options.name + " " + std::to_string(num_inputs(spec)) + "-" + std::to_string(options.hidden) + "-" +
         std::to_string(spec.num_classes);
}

}  // namespace gradstep
