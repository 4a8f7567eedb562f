// Checks all before it copies any.
#include "checkpoint/copy_by_name.h"

#include <torch/torch.h>

#include "gradstep/base/error.h"

namespace gradstep {
namespace {

void check_names(const std::string& where, const NamedTensors& stored, const NamedTensors& live) {
  std::map<std::string, at::Tensor> sources(stored.begin(), stored.end());
  for (const auto& [name, tensor] : live) {
    const auto source = sources.find(name);
    if (source == sources.end()) throw CheckpointError(where + ": tensor " + name + " is missing");
    if (source->second.sizes() != tensor.sizes() || source->second.scalar_type() != tensor.scalar_type()) {
      std::ostringstream text;
      text << where << ": tensor " << name << " is " << source->second.scalar_type() << " "
           << source->second.sizes() << ", needed is " << tensor.scalar_type() << " " << tensor.sizes();
      throw CheckpointError(text.str());
    }
    sources.erase(source);
  }
  if (!sources.empty())
    throw CheckpointError(where + ": tensor " + sources.begin()->first + " is one too many");
}

}  // namespace

void copy_by_name(const std::string& where, const NamedTensors& stored, const NamedTensors& live) {
  check_names(where, stored, live);
  const at::NoGradGuard no_grad;
  const std::map<std::string, at::Tensor> sources(stored.begin(), stored.end());
  for (const auto& [name, tensor] : live) at::Tensor(tensor).copy_(sources.at(name));
}

}  // namespace gradstep
