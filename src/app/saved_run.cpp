// The file is not trusted: the sizes that it claims are compared with its tensors before a model is built.
#include "app/saved_run.h"

#include <torch/torch.h>

#include <algorithm>
#include <set>

#include "app/program.h"
#include "config/flag_table.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

int64_t num_elements(const ModelFile& file) {
  int64_t elements = 0;
  std::set<const void*> counted;  // second names of one tensor hold nothing new
  for (const auto& [name, tensor] : file.tensors) {
    if (counted.insert(tensor.const_data_ptr()).second) elements += tensor.numel();
  }
  return elements;
}

}  // namespace

std::unique_ptr<RunSettings> restore_settings(const std::string& file,
                                              const std::map<std::string, std::string>& recorded,
                                              const std::vector<std::pair<std::string, std::string>>& given) {
  auto settings = std::make_unique<RunSettings>(program().catalog);
  const auto required = [&](const std::string& key) {
    const auto found = recorded.find(key);
    if (found != recorded.end()) return found->second;
    throw CheckpointError(file + ": no \"gradstep." + key + "\" in its metadata: not a model file of " +
                          program().name + "; give the model.safetensors of a run");
  };
  const std::string dataset = required("dataset");
  std::map<std::string, std::string> texts = recorded;
  texts["model"] = required("model");
  const std::vector<std::string>& models = program().catalog.model_names();
  if (std::ranges::find(models, texts["model"]) == models.end())
    throw CheckpointError(file + ": is of the model '" + texts["model"] +
                          "', which is not known here; use the program that wrote it");
  const auto names_dataset = [](const auto& each) { return each.first == "dataset"; };
  const auto named = std::ranges::find_if(given, names_dataset);
  if (named != given.end()) {
    // The recorded folder and the validation part belong to the recorded data set.
    if (named->second != dataset) {
      texts.erase("data_dir");
      texts.erase("val_fraction");
    }
    texts.erase("dataset");
  } else if (std::ranges::find(program().catalog.dataset_names(), dataset) ==
             program().catalog.dataset_names().end()) {
    throw CheckpointError(
        file + ": was trained on the data set '" + dataset + "', which is not known here; " +
        (program().catalog.has_choice() ? "name one with --dataset" : "use the program that wrote it"));
  }
  settings->restore(file, texts);
  settings->dataset().restored();
  for (const auto& [key, text] : given) settings->set(key, text, flag_spelling(key));
  return settings;
}

Task build_task(const std::string& path, const ModelFile& file, const RunSettings& settings,
                const DatasetSpec& spec) {
  ModelRecipe& recipe = settings.model();
  if (recipe.size(spec).parameters > num_elements(file)) {
    throw CheckpointError(
        path + ": holds fewer numbers than a model of the sizes in its metadata has; use another file");
  }
  Task task = recipe.task(spec);
  validate(task);
  load_model(path, file, *task.module);
  return task;
}

}  // namespace gradstep
