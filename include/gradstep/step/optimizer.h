// Optimizer: turns gradients into changed parameters. AdamW and SGD by ATen's fused kernels, or one of your
// own; and the groups of parameters that train differently.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gradstep/io/safetensors.h"

namespace gradstep {

/// Parameters that train differently from the rest. A parameter belongs to the first group whose pattern
/// matches its name, and to no group if no pattern does. PyTorch: the param_groups of an optimizer.
struct ParamGroup {
  /// Matches the whole name of a parameter, as named_parameters() spells it: `*` stands for any number of
  /// characters, dots included, `?` for one character. "embed.*", "*.bias", "layers.?.weight".
  std::string pattern{};
  double lr_factor = 1;                  ///< times the learning rate of the schedule
  std::optional<double> weight_decay{};  ///< in place of OptimizerOptions::weight_decay
  bool frozen = false;                   ///< no update, no decay, no moments, no average
  /// Equal if all fields are equal.
  bool operator==(const ParamGroup&) const = default;
};

/// Reads groups from text: "embed.*:lr=0.1,wd=0; head.*:frozen". Semicolons separate groups. A group is a
/// pattern, a colon, and settings separated by commas: `lr=` with a factor, `wd=` with a weight decay, or
/// `frozen` alone. Empty text gives no group. Throws ConfigError naming the group that it cannot read.
[[nodiscard]] std::vector<ParamGroup> parse_param_groups(const std::string& text);

/// Text that parse_param_groups() reads back to the same groups, unless a pattern has one of ":;,".
[[nodiscard]] std::string to_string(const std::vector<ParamGroup>& groups);

/// A parameter that an optimizer trains, with what its group says about it.
struct TrainedParameter {
  std::string name{};       ///< as named_parameters() spells it
  at::Tensor tensor{};      ///< the parameter itself, fp32
  double lr_factor = 1;     ///< times the learning rate that Optimizer::step() is given
  bool decays = false;      ///< false for vectors and scalars, unless OptimizerOptions::decay_all
  double weight_decay = 0;  ///< 0 unless it decays
};

/// The optimizers that gradstep brings, both by ATen's fused kernels.
enum class OptimizerKind {
  kAdamW,  ///< torch.optim.AdamW (Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019)
  kSgd     ///< torch.optim.SGD, with momentum
};

/// "adamw" or "sgd".
[[nodiscard]] std::string to_string(OptimizerKind kind);
/// Reads "adamw" or "sgd". Throws ConfigError for any other text.
[[nodiscard]] OptimizerKind parse_optimizer_kind(const std::string& text);

/// Which optimizer trains, and how. The learning rate comes from LrSchedule.
struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamW;  ///< which optimizer
  /// AdamW shrinks each parameter by lr * weight_decay of itself (decoupled); SGD adds weight_decay times the
  /// parameter to its gradient. Parameters with one dimension or none do not decay, unless `decay_all`.
  double weight_decay = 1e-4;
  double beta1 = 0.9;                ///< AdamW: decay of the mean of the gradients
  double beta2 = 0.999;              ///< AdamW: decay of the mean of their squares
  double eps = 1e-8;                 ///< AdamW: added to the denominator
  double momentum = 0.9;             ///< SGD; 0: none
  bool nesterov = false;             ///< SGD: Nesterov momentum
  bool decay_all = false;            ///< parameters with one dimension or none decay too
  std::vector<ParamGroup> groups{};  ///< the first that matches a parameter holds for it
};

/// Throws ConfigError naming the option if a value makes no sense: a beta or the momentum outside [0, 1), an
/// eps that is 0 in fp32, a negative or infinite weight decay or learning rate factor, Nesterov without
/// momentum.
void validate(const OptimizerOptions& options);

/// How many tensors as large as a parameter make_optimizer(..., options) remembers for each: 2 for AdamW, 1
/// for SGD with momentum, else 0.
[[nodiscard]] int64_t num_moments(const OptimizerOptions& options);

/// Turns gradients into changed parameters: what the engine and the checkpoints need of an optimizer. Derive
/// from it to bring your own, and set EngineOptions::make_optimizer to a function that makes it. PyTorch:
/// torch.optim.Optimizer.
class Optimizer {
 public:
  /// Trains `parameters`. The tensors stay the caller's. Names are unique, and a shared tensor is listed
  /// once.
  explicit Optimizer(std::vector<TrainedParameter> parameters);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Makes one update from the .grad of each parameter, with learning rate `lr` times the lr_factor of the
  /// parameter. Leaves a parameter without a gradient as it is, and its state too. If found_inf (0-dim fp32,
  /// on the device of the parameters) is 1, changes nothing. Should not wait for the device.
  virtual void step(double lr, const at::Tensor& found_inf) = 0;

  /// All that step() remembers, in a fixed order. Names are "PARAMETER.WHAT", such as "fc1.weight.exp_avg".
  /// The tensors share memory with the optimizer: a checkpoint reads them, and a resume copies into them.
  /// Number, names, shapes and types never change.
  [[nodiscard]] virtual NamedTensors state() const = 0;

  /// Whether a resume may go on without this tensor of state(), as SGD's momentum after a run without: if the
  /// checkpoint lacks it, it begins at 0; if only the checkpoint has it, it is dropped.
  [[nodiscard]] virtual bool is_optional(const std::string& /*name*/) const { return false; }

  /// Bytes of state().
  [[nodiscard]] int64_t state_bytes() const;

  /// The parameters it trains, with their names; frozen ones are not among them.
  [[nodiscard]] const NamedTensors& parameters() const { return named_; }
  /// The same parameters, in the same order, with what their groups say about them.
  [[nodiscard]] const std::vector<TrainedParameter>& trained() const { return trained_; }

 private:
  std::vector<TrainedParameter> trained_;
  NamedTensors named_;
};

/// Makes an optimizer over the parameters that train.
using OptimizerFactory = std::function<std::unique_ptr<Optimizer>(std::vector<TrainedParameter> parameters)>;

/// Makes the optimizer that options.kind names. AdamW remembers "PARAMETER.exp_avg", ".exp_avg_sq" and
/// ".step" (0-dim fp32), SGD ".momentum_buffer", or nothing without momentum. REQUIRES: validate(options)
/// throws nothing.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(std::vector<TrainedParameter> parameters,
                                                        const OptimizerOptions& options);

}  // namespace gradstep
