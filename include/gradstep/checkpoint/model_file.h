// Weights in files: the model file that a run writes, and load_weights for any safetensors file.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gradstep/io/file_system.h"
#include "gradstep/io/safetensors.h"
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

struct LoadWeightsOptions {
  /// Every parameter and buffer of the module must be in the file, and nothing else. False: takes what has a
  /// name in both.
  bool strict = true;
  /// The name in the file -> the name in the module; "" leaves the tensor out. Empty: the names are equal.
  std::function<std::string(const std::string& name)> rename{};
  /// Converts between floating point types, such as bf16 in the file to fp32 in the module. False: another
  /// type is an error.
  bool cast = false;
};

/// Names in the order of the module and of the file.
struct LoadedWeights {
  std::vector<std::string> loaded{};      ///< of the module
  std::vector<std::string> missing{};     ///< of the module, and not in the file; never under `strict`
  std::vector<std::string> unexpected{};  ///< after rename, and not in the module; never under `strict`
};

/// Copies the tensors of the file at `path` into the parameters and buffers of the same name. The order in
/// the file means nothing; the module stays on its device. A tensor that the module has under several names
/// needs one of them only. Throws CheckpointError with one line that names the file and everything that does
/// not fit: missing and unexpected names, shapes and types; the module is unchanged then. Also throws it for
/// a file that cannot be read, and for two tensors that are renamed to one name.
LoadedWeights load_weights(torch::nn::Module& module, const std::string& path,
                           const LoadWeightsOptions& options = {});

/// For LoadWeightsOptions::rename: takes `prefix` off the front of a name, and leaves out names without it.
[[nodiscard]] std::function<std::string(const std::string& name)> without_prefix(const std::string& prefix);

}  // namespace gradstep
