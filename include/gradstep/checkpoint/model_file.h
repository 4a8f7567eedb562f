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

/// What a model file has besides the weights, in its metadata.
struct ModelInfo {
  /// Job::model_settings: the module is built again from these. Their keys must not be version, git_commit,
  /// precision, matmul, update, train_data, eval_data or black_box, which the file has for itself.
  std::map<std::string, std::string> settings{};
  Precision precision = Precision::kFp32;  ///< that the model was trained in
  Matmul matmul = Matmul::kTorch;          ///< that computed its matrix products
  int64_t update = 0;                      ///< updates applied
  std::string train_data{};  ///< Dataset::fingerprint() of the samples it was trained on; empty: not known
  std::string eval_data{};   ///< likewise of those that its evaluations measured
};

/// The parameters, then the buffers of a module, by their PyTorch state_dict names. They share memory with
/// the module.
[[nodiscard]] NamedTensors model_tensors(const torch::nn::Module& module);

/// Writes parameters and buffers of a module into a safetensors file, under their PyTorch state_dict names,
/// atomically. Synchronises the device. Throws CheckpointError, and ConfigError for settings with keys of the
/// file or keys that are not UTF-8.
void save_model(FileSystem& file_system, const std::string& path, const torch::nn::Module& module,
                const ModelInfo& info);
/// The same for tensors by name. Returns the bytes of the file.
uint64_t save_model(FileSystem& file_system, const std::string& path, const NamedTensors& tensors,
                    const ModelInfo& info);

/// The content of a model file.
struct ModelFile {
  ModelInfo info;        ///< its metadata
  NamedTensors tensors;  ///< in file order, on the CPU
};

/// Reads a file that a run or save_model() wrote. Throws CheckpointError naming the file and what is wrong:
/// not safetensors, not written by gradstep, a value out of range. load_weights() reads other safetensors
/// files.
[[nodiscard]] ModelFile read_model_file(const std::string& path);

/// Copies the tensors of a model file into the module by name, in whatever order they are. `path` is for
/// messages. Throws CheckpointError naming the first tensor that is missing, too many, or of another shape or
/// type.
void load_model(const std::string& path, const ModelFile& file, torch::nn::Module& module);

/// How load_weights() finds the tensor of a parameter.
struct LoadWeightsOptions {
  /// True: every parameter and buffer of the module must be in the file, and nothing else. False: takes the
  /// names that both have.
  bool strict = true;
  /// The name in the file -> the name in the module; "" leaves the tensor out. Empty: the names are equal.
  std::function<std::string(const std::string& name)> rename{};
  /// True: converts between floating point types, such as bf16 in the file to fp32 in the module. False:
  /// another type is an error.
  bool cast = false;
};

/// What load_weights() did.
struct LoadedWeights {
  std::vector<std::string> loaded{};   ///< names in the module that got their values from the file
  std::vector<std::string> missing{};  ///< names in the module that the file does not have; empty if `strict`
  /// Names in the file, after `rename`, that the module does not have; empty if `strict`.
  std::vector<std::string> unexpected{};
};

/// Copies the tensors of the safetensors file at `path` into the parameters and buffers of the same name. The
/// order in the file means nothing, and the module stays on its device. A tensor that the module has under
/// several names needs only one of them; if the file has more, they must be equal. Throws CheckpointError
/// with one line that names the file and everything that does not fit: missing and unexpected names, shapes,
/// types, and values that a cast would make infinite; the module is unchanged then. Also throws it for a file
/// that cannot be read, and for two tensors that are renamed to one name. PyTorch:
/// torch.nn.Module.load_state_dict.
LoadedWeights load_weights(torch::nn::Module& module, const std::string& path,
                           const LoadWeightsOptions& options = {});

/// A function for LoadWeightsOptions::rename that takes `prefix` off the front of a name, and leaves out
/// names without it.
[[nodiscard]] std::function<std::string(const std::string& name)> without_prefix(const std::string& prefix);

}  // namespace gradstep
