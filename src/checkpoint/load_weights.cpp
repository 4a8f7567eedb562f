// Everything is compared before anything is copied.
#include <ATen/MemoryOverlap.h>
#include <torch/torch.h>

#include <map>

#include "base/nearest.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/model_file.h"
#include "gradstep/io/safetensors.h"
#include "io/shape_text.h"

namespace gradstep {
namespace {

// Parameters, then buffers, a shared one under each of its names.
NamedTensors tensors_of(const torch::nn::Module& module) {
  NamedTensors tensors;
  for (const auto& item : module.named_parameters()) tensors.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) tensors.emplace_back(item.key(), item.value());
  return tensors;
}

NamedTensors renamed(const std::string& path, NamedTensors stored, const LoadWeightsOptions& options) {
  NamedTensors result;
  std::map<std::string, std::string> origin;  // new name -> name in the file
  for (auto& [name, tensor] : stored) {
    std::string now = options.rename ? options.rename(name) : name;
    if (now.empty()) continue;
    const auto [taken, is_new] = origin.emplace(now, name);
    if (!is_new)
      throw CheckpointError(path + ": " + taken->second + " and " + name + " are both renamed to " + now);
    result.emplace_back(std::move(now), std::move(tensor));
  }
  return result;
}

// What does not fit; empty: it can be copied.
std::string misfit(const std::string& name, const at::Tensor& stored, const at::Tensor& own, bool cast) {
  if (stored.sizes() != own.sizes())
    return name + " has shape " + shape_text(stored.sizes()) + ", the module " + shape_text(own.sizes());
  if (at::has_internal_overlap(own) == at::MemOverlap::Yes)
    return name + " has elements that share memory in the module; register a clone() of it";
  if (stored.scalar_type() == own.scalar_type()) return {};
  const std::string types = name + " is " + c10::toString(stored.scalar_type()) + ", in the module " +
                            c10::toString(own.scalar_type());
  const bool both_float = stored.is_floating_point() && own.is_floating_point();
  if (!cast || !both_float) return types + (both_float ? " (cast converts it)" : "");
  const at::Tensor lost =
      stored.isfinite().logical_and(stored.to(own.scalar_type()).isfinite().logical_not());
  return lost.any().item<bool>() ? types + ", which cannot hold all its values" : "";
}

bool same_values(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  return a.eq(b).logical_or(a.ne(a).logical_and(b.ne(b))).all().item<bool>();  // NaN is NaN
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMost; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
  return text;
}

}  // namespace

LoadedWeights load_weights(torch::nn::Module& module, const std::string& path,
                           const LoadWeightsOptions& options) {
  const NamedTensors stored = renamed(path, read_safetensors(path).tensors, options);
  const std::map<std::string, at::Tensor> by_name(stored.begin(), stored.end());
  const NamedTensors own = tensors_of(module);
  std::map<const void*, std::string> filled_by;  // tensor -> the first of its names that the file has
  for (const auto& [name, tensor] : own) {
    if (by_name.contains(name)) filled_by.emplace(tensor.unsafeGetTensorImpl(), name);
  }

  LoadedWeights result;
  std::map<std::string, at::Tensor> targets;
  std::vector<std::string> misfits;
  for (const auto& [name, tensor] : own) {
    targets.emplace(name, tensor);
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      if (!filled_by.contains(tensor.unsafeGetTensorImpl())) result.missing.push_back(name);
      continue;
    }
    result.loaded.push_back(name);
    const std::string problem = misfit(name, found->second, tensor, options.cast);
    if (!problem.empty()) misfits.push_back(problem);
    const std::string& first = filled_by.at(tensor.unsafeGetTensorImpl());
    if (first != name && !same_values(found->second, by_name.at(first)))
      misfits.push_back(first + " and " + name + " are one tensor in the module, but differ in the file");
  }
  for (const auto& [name, tensor] : stored) {
    if (!targets.contains(name)) result.unexpected.push_back(name);
  }

  std::string problems;
  const auto add = [&](const char* what, const std::vector<std::string>& names, const std::string& hint) {
    if (!names.empty()) problems += (problems.empty() ? "" : "; ") + std::string(what) + listed(names) + hint;
  };
  if (options.strict) {
    add("missing: ", result.missing, "");
    add("unexpected: ", result.unexpected,
        result.unexpected.empty() ? "" : did_you_mean(result.unexpected.front(), result.missing));
  }
  if (result.loaded.empty() && !options.strict)
    add("no tensor has a name of the module; it has: ", result.unexpected, "; map the names with `rename`");
  add("does not fit: ", misfits, "");
  if (!problems.empty()) throw CheckpointError(path + ": " + problems);

  const at::NoGradGuard no_grad;
  for (const std::string& name : result.loaded) targets.at(name).copy_(by_name.at(name));
  return result;
}

std::function<std::string(const std::string& name)> without_prefix(const std::string& prefix) {
  return [prefix](const std::string& name) {
    return name.starts_with(prefix) ? name.substr(prefix.size()) : std::string();
  };
}

}  // namespace gradstep
