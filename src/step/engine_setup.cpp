// Checks of the options, the parameters, and the optimizer over them.
#include "step/engine_setup.h"

#include <torch/torch.h>

#include <limits>

#include "base/is_within.h"
#include "base/seed.h"
#include "gradstep/base/error.h"
#include "step/param_groups.h"

namespace gradstep {
namespace {

void check_fp32(const TrainedParameter& parameter) {
  if (parameter.tensor.scalar_type() == at::kFloat) return;
  throw ConfigError(
      "parameter " + parameter.name + " is " + c10::toString(parameter.tensor.scalar_type()) +
      ", not fp32: keep the parameters in fp32 (module->to(torch::kFloat)) and choose `precision` "
      "for the forward pass");
}

// Device and checkpoint keep the scale in fp32.
bool is_positive_fp32(double value) {
  return value > 0 && value <= std::numeric_limits<float>::max() && static_cast<float>(value) > 0;
}

// Of each parameter in the module's order, a shared one more than once. Copies no names, since it runs before
// each window.
template <class Visit>
void visit_parameters(const torch::nn::Module& module, Visit visit) {
  for (const at::Tensor& parameter : module.parameters(/*recurse=*/false)) visit(parameter);
  for (const auto& child : module.children()) visit_parameters(*child, visit);
}

std::vector<const void*> all_parameters(const torch::nn::Module& module) {
  std::vector<const void*> all;
  visit_parameters(module, [&](const at::Tensor& each) { all.push_back(each.unsafeGetTensorImpl()); });
  return all;
}

}  // namespace

NamedTensors distinct_parameters(const torch::nn::Module& module) {
  NamedTensors parameters;
  std::vector<const void*> seen;
  for (const auto& item : module.named_parameters()) {
    const void* identity = item.value().unsafeGetTensorImpl();
    if (std::find(seen.begin(), seen.end(), identity) != seen.end()) continue;
    seen.push_back(identity);
    parameters.emplace_back(item.key(), item.value());
  }
  return parameters;
}

void validate(const EngineOptions& options) {
  const auto require = [](bool holds, const std::string& rule) {
    if (!holds) throw ConfigError("engine: " + rule);
  };
  validate(options.optimizer);
  validate(options.schedule);
  check_seed(options.seed);
  require(is_within(options.precision, Precision::kFp32, Precision::kFp16),
          "precision must be Precision::kFp32, kBf16 or kFp16");
  require(options.micro_batch >= 1, "the micro-batch must be 1 sample or more");
  require(options.clip_grad >= 0, "clip_grad must be a norm of at least 0; 0 is off");
  require(options.max_skips_in_a_row >= 1, "max_skips_in_a_row must be 1 or more");
  require(options.ema_decay >= 0 && options.ema_decay < 1,
          "ema_decay must be at least 0 and below 1; 0 is off");
  require(options.spikes.z_score >= 0, "spikes.z_score must be at least 0; 0 is off");
  require(options.spikes.window >= 2, "spikes.window must be 2 windows or more");
  const GradScalerOptions& scaler = options.scaler;
  require(is_positive_fp32(scaler.init_scale), "scaler.init_scale must be above 0 and finite in fp32");
  require(scaler.growth_factor >= 1 && is_positive_fp32(scaler.growth_factor),
          "scaler.growth_factor must be at least 1 and finite in fp32");
  require(scaler.backoff_factor <= 1 && is_positive_fp32(scaler.backoff_factor),
          "scaler.backoff_factor must be above 0 in fp32 and at most 1");
  require(scaler.growth_interval >= 1 && scaler.growth_interval <= std::numeric_limits<int32_t>::max(),
          "scaler.growth_interval must be 1 to 2^31 - 1 updates");
}

EngineParameters engine_parameters(const Task& task, const EngineOptions& options) {
  validate(task);
  validate(options);
  GroupedParameters grouped = apply_groups(distinct_parameters(*task.module), options.optimizer);
  for (const TrainedParameter& parameter : grouped.trained) check_fp32(parameter);
  for (auto& [name, parameter] : grouped.frozen) parameter.requires_grad_(false);
  EngineParameters result{.all = all_parameters(*task.module), .frozen = std::move(grouped.frozen)};
  result.optimizer = options.make_optimizer ? options.make_optimizer(std::move(grouped.trained))
                                            : make_optimizer(std::move(grouped.trained), options.optimizer);
  if (!result.optimizer || result.optimizer->parameters().empty())
    throw ConfigError("engine: make_optimizer made no optimizer over the parameters it was given");
  return result;
}

void require_same_parameters(const torch::nn::Module& module, const EngineParameters& parameters) {
  const std::string advice = "; it would never train: make the engine anew";
  for (const auto& [name, parameter] : parameters.frozen) {
    if (parameter.requires_grad())
      throw ConfigError("parameter " + name + " was unfrozen after the engine was made" + advice);
  }
  if (all_parameters(module) == parameters.all) return;
  for (const auto& item : module.named_parameters()) {
    const void* identity = item.value().unsafeGetTensorImpl();
    if (std::ranges::find(parameters.all, identity) == parameters.all.end())
      throw ConfigError("parameter " + item.key() + " was registered after the engine was made" + advice);
  }
  throw ConfigError(
      "a parameter of the module was taken out after the engine was made: make the engine anew");
}

}  // namespace gradstep
