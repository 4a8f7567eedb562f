// Building, saving and loading models by what their files say.
#include "gradstep/run/model_file.h"

#include <torch/torch.h>

#include <set>

#include "gradstep/base/error.h"
#include "run/model_metadata.h"

namespace gradstep {
namespace {

NamedTensors state_of(const torch::nn::Module& module) {
  NamedTensors state;
  for (const auto& item : module.named_parameters()) state.emplace_back(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers()) state.emplace_back(item.key(), item.value().detach());
  return state;
}

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

void copy_state(const std::string& path, const SafetensorsFile& file, const torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> stored(file.tensors.begin(), file.tensors.end());
  for (auto& [name, tensor] : state_of(module)) {
    const auto found = stored.find(name);
    if (found == stored.end()) throw CheckpointError(path + ": tensor " + name + " is missing");
    if (found->second.sizes() != tensor.sizes() || found->second.scalar_type() != tensor.scalar_type()) {
      std::ostringstream text;
      text << path << ": tensor " << name << " is " << found->second.scalar_type() << " "
           << found->second.sizes() << ", the model needs " << tensor.scalar_type() << " " << tensor.sizes();
      throw CheckpointError(text.str());
    }
    tensor.copy_(found->second);
    stored.erase(found);
  }
  if (!stored.empty())
    throw CheckpointError(path + ": tensor " + stored.begin()->first + " is not of this model");
}

}  // namespace

void save_model(FileSystem& file_system, const std::string& path, const torch::nn::Module& module,
                const ModelInfo& info) {
  write_safetensors(file_system, path, state_of(module), model_metadata(info));
}

uint64_t save_model(FileSystem& file_system, const std::string& path, const NamedTensors& tensors,
                    const ModelInfo& info) {
  return write_safetensors(file_system, path, tensors, model_metadata(info));
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
  copy_state(path, file, *loaded.task.module);
  return loaded;
}

}  // namespace gradstep
