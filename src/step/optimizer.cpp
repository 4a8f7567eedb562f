// What all optimizers share, and the one place that knows their kinds.
#include "gradstep/step/optimizer.h"

#include <ATen/ATen.h>

#include "base/is_within.h"
#include "base/number_text.h"
#include "gradstep/base/error.h"
#include "step/adamw.h"
#include "step/sgd.h"

namespace gradstep {
namespace {

void check(bool holds, const std::string& name, double value, const std::string& range) {
  if (!holds) throw ConfigError("optimizer: " + name + " is " + shortest(value) + ", must be " + range);
}

bool is_not_negative(double value) { return value >= 0 && std::isfinite(value); }

}  // namespace

std::string to_string(OptimizerKind kind) { return kind == OptimizerKind::kSgd ? "sgd" : "adamw"; }

OptimizerKind parse_optimizer_kind(const std::string& text) {
  if (text == "adamw") return OptimizerKind::kAdamW;
  if (text == "sgd") return OptimizerKind::kSgd;
  throw ConfigError("optimizer \"" + text + "\" is not one of adamw, sgd");
}

int64_t num_moments(const OptimizerOptions& options) {
  if (options.kind == OptimizerKind::kAdamW) return AdamW::kMoments;
  return Sgd::num_moments(options.momentum);
}

void validate(const OptimizerOptions& options) {
  if (!is_within(options.kind, OptimizerKind::kAdamW, OptimizerKind::kSgd))
    throw ConfigError("optimizer: kind must be OptimizerKind::kAdamW or kSgd");
  constexpr const char* kPart = "at least 0 and below 1";
  check(is_not_negative(options.weight_decay), "weight decay", options.weight_decay, "at least 0 and finite");
  if (options.kind == OptimizerKind::kAdamW) {
    check(options.beta1 >= 0 && options.beta1 < 1, "beta1", options.beta1, kPart);
    check(options.beta2 >= 0 && options.beta2 < 1, "beta2", options.beta2, kPart);
    // A moment of 0 would be divided by 0.
    check(static_cast<float>(options.eps) > 0 && std::isfinite(options.eps), "eps", options.eps,
          "above 0 in fp32, such as 1e-8");
  } else {
    check(options.momentum >= 0 && options.momentum < 1, "momentum", options.momentum, kPart);
  }
  if (options.nesterov && options.kind != OptimizerKind::kSgd) {
    throw ConfigError("optimizer: `nesterov` belongs to `opt` sgd, not to `opt` " + to_string(options.kind) +
                      "; drop it or give `opt` sgd");
  }
  if (options.nesterov && options.momentum == 0) {
    throw ConfigError(
        "optimizer: `nesterov` needs a `momentum` above 0; give one such as 0.9 or drop `nesterov`");
  }
  for (const ParamGroup& group : options.groups) {
    const std::string of_group = " of group " + group.pattern;
    check(is_not_negative(group.lr_factor), "learning rate factor" + of_group, group.lr_factor,
          "at least 0 and finite");
    if (group.weight_decay) {
      check(is_not_negative(*group.weight_decay), "weight decay" + of_group, *group.weight_decay,
            "at least 0 and finite");
    }
  }
}

Optimizer::Optimizer(std::vector<TrainedParameter> parameters) : trained_(std::move(parameters)) {
  for (const TrainedParameter& parameter : trained_) named_.emplace_back(parameter.name, parameter.tensor);
}

int64_t Optimizer::state_bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : state()) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

std::unique_ptr<Optimizer> make_optimizer(std::vector<TrainedParameter> parameters,
                                          const OptimizerOptions& options) {
  if (options.kind == OptimizerKind::kSgd) return std::make_unique<Sgd>(std::move(parameters), options);
  return std::make_unique<AdamW>(std::move(parameters), options);
}

}  // namespace gradstep
