// The model file: weights as safetensors, with what is needed to build the model again and to evaluate it as
// it was trained.
#pragma once

#include <map>
#include <string>

#include "gradstep/io/file_system.h"
#include "gradstep/io/safetensors.h"
#include "gradstep/step/matmul.h"
#include "gradstep/step/optimizer.h"
#include "gradstep/step/precision.h"

namespace torch::nn {
class Module;
}

namespace gradstep {

struct ModelInfo {
  /// Job::model_settings: from these the module is built again.
  std::map<std::string, std::string> settings{};
  Precision precision = Precision::kFp32;  ///< really used
  Matmul matmul = Matmul::kTorch;          ///< really used
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

struct ModelFile {
  ModelInfo info;
  NamedTensors tensors;  // on the CPU
};

/// Throws CheckpointError naming file and what is wrong: not safetensors, not written by gradstep, a value
/// out of range.
[[nodiscard]] ModelFile read_model_file(const std::string& path);

/// Copies the file's tensors into the module by name, whatever their order. Throws CheckpointError naming the
/// first that is missing, too many, or of another shape or type.
void load_model(const std::string& path, const ModelFile& file, torch::nn::Module& module);

}  // namespace gradstep
