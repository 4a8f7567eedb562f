// load_weights: puts the tensors of a safetensors file into a module, by name.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace torch::nn {
class Module;
}

namespace gradstep {

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
