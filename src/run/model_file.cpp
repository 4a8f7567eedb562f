// Building, saving and loading models by what their files say.
#include "gradstep/run/model_file.h"

#include <torch/torch.h>

#include <set>

#include "gradstep/base/error.h"
#include "run/copy_by_name.h"
#include "run/model_metadata.h"

namespace gradstep {
namespace {

// Sizes in the metadata are not trusted: the module is built only when the file holds as many numbers as its
// two matrices have, so that a small file cannot ask for much memory.
void check_sizes(const std::string& path, const ModelInfo& info, const SafetensorsFile& file) {
  int64_t num_inputs = 1;
  for (const int64_t size : info.dataset.input_shape) num_inputs *= size;
  int64_t file_elements = 0;
  std::set<const void*> counted;  // second names of one tensor hold nothing new
  for (const auto& [name, tensor] : file.tensors) {
    if (counted.insert(tensor.const_data_ptr()).second) file_elements += tensor.numel();
  }
  // Products stay below 2^53: each factor is checked before.
  if (info.model.hidden * (num_inputs + info.dataset.num_classes) > file_elements) {
    throw CheckpointError(
        path + ": holds fewer numbers than a model of the sizes in its metadata has; use another file");
  }
}

}  // namespace

NamedTensors model_tensors(const torch::nn::Module& module) {
  NamedTensors state;
  for (const auto& item : module.named_parameters()) state.emplace_back(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers()) state.emplace_back(item.key(), item.value().detach());
  return state;
}

uint64_t save_model(FileSystem& file_system, const std::string& path, const NamedTensors& tensors,
                    const ModelInfo& info) {
  return write_safetensors(file_system, path, tensors, model_metadata(info));
}

void save_model(FileSystem& file_system, const std::string& path, const torch::nn::Module& module,
                const ModelInfo& info) {
  save_model(file_system, path, model_tensors(module), info);
}

LoadedModel load_model(const std::string& path) {
  const SafetensorsFile file = read_safetensors(path);
  LoadedModel loaded{model_info(path, file.metadata), {}};
  check_sizes(path, loaded.info, file);
  try {
    loaded.task = make_task(loaded.info.model, loaded.info.dataset);
  } catch (const ConfigError& error) {
    throw CheckpointError(path + ": " + error.what());
  }
  copy_by_name(path, file.tensors, model_tensors(*loaded.task.module));
  return loaded;
}

}  // namespace gradstep
