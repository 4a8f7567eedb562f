// The model file: weights as safetensors, with what is needed to build the model again and to evaluate it as
// it was trained.
#pragma once

#include <string>

#include "gradstep/data/dataset.h"
#include "gradstep/io/file_system.h"
#include "gradstep/io/safetensors.h"
#include "gradstep/model/registry.h"
#include "gradstep/step/matmul.h"
#include "gradstep/step/optimizer.h"
#include "gradstep/step/precision.h"

namespace gradstep {

struct ModelInfo {
  ModelOptions model{};
  DatasetSpec dataset{};
  std::string data_dir{};
  double val_fraction = 0;  // with seed: which part of the training set evaluation looks at; 0: the test set
  uint64_t seed = 0;
  Precision precision = Precision::kFp32;  // really used
  Matmul matmul = Matmul::kTorch;          // really used
  int64_t update = 0;
};

// Parameters, then buffers, by their PyTorch state_dict names; they share memory with the module.
[[nodiscard]] NamedTensors model_tensors(const torch::nn::Module& module);

// Writes parameters and buffers under their PyTorch state_dict names, atomically. Throws CheckpointError.
void save_model(FileSystem& file_system, const std::string& path, const torch::nn::Module& module,
                const ModelInfo& info);
// The same of parameters and buffers by name. Returns the bytes of the file.
uint64_t save_model(FileSystem& file_system, const std::string& path, const NamedTensors& tensors,
                    const ModelInfo& info);

struct LoadedModel {
  ModelInfo info;
  Task task;  // on the CPU, with the file's weights
};

// Throws CheckpointError naming file, tensor and what is wrong: not a model of ours, a tensor missing, too
// many, or of another shape or type.
[[nodiscard]] LoadedModel load_model(const std::string& path);

}  // namespace gradstep
