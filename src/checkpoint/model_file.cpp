// Saving and loading weights with what their files say about them.
#include "gradstep/checkpoint/model_file.h"

#include <torch/torch.h>

#include "checkpoint/copy_by_name.h"
#include "checkpoint/model_metadata.h"
#include "gradstep/base/error.h"

namespace gradstep {
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

ModelFile read_model_file(const std::string& path) {
  SafetensorsFile file = read_safetensors(path);
  return {model_info(path, file.metadata), std::move(file.tensors)};
}

void load_model(const std::string& path, const ModelFile& file, torch::nn::Module& module) {
  copy_by_name(path, file.tensors, model_tensors(module));
}

}  // namespace gradstep
