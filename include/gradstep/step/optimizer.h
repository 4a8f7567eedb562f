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
/// matches its name, and to no group if none does.
struct ParamGroup {
  /// Matches the whole name of a parameter, as named_parameters() spells it: `*` stands for any number of
  /// characters, dots included, `?` for one character. "embed.*", "*.bias", "layers.?.weight".
  std::string pattern{};
  double lr_factor = 1;                  ///< times the learning rate of the schedule
  std::optional<double> weight_decay{};  ///< in place of OptimizerOptions::weight_decay
  bool frozen = false;                   ///< no update, no decay, no moments, no average
  bool operator==(const ParamGroup&) const = default;
};

/// Reads groups from text: "embed.*:lr=0.1,wd=0; head.*:frozen". A semicolon separates groups, a colon a
/// pattern from its settings, a comma settings: `lr=` a factor, `wd=` a weight decay, or `frozen` alone.
/// Empty text gives no group. Throws ConfigError naming the group that it cannot read.
[[nodiscard]] std::vector<ParamGroup> parse_param_groups(const std::string& text);

/// A parameter that an optimizer trains, with all that its group says settled.
struct TrainedParameter {
  std::string name{};
  at::Tensor tensor{};
  double lr_factor = 1;     ///< times the learning rate that Optimizer::step() is given
  bool decays = false;      ///< false for vectors and scalars, unless OptimizerOptions::decay_all
  double weight_decay = 0;  ///< 0 unless it decays
};

/// Parameters sorted into those that train and those that rest.
struct GroupedParameters {
  std::vector<TrainedParameter> trained{};
  NamedTensors frozen{};
};

/// True if `pattern` matches all of `name`: see ParamGroup::pattern.
[[nodiscard]] bool matches(const std::string& pattern, const std::string& name);

/// The index of the first group that `name` belongs to; nothing if it belongs to none.
[[nodiscard]] std::optional<size_t> group_of(const std::string& name, const std::vector<ParamGroup>& groups);

enum class OptimizerKind { kAdamW, kSgd };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdamW;
  /// AdamW: decoupled (torch.optim.AdamW); SGD: added to the gradient (torch.optim.SGD).
  double weight_decay = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum = 0.9;             ///< SGD
  bool nesterov = false;             ///< SGD
  bool decay_all = false;            ///< decay parameters with one dimension or none too
  std::vector<ParamGroup> groups{};  ///< the first that matches a parameter holds for it
};

/// Throws ConfigError naming the option if a value makes no sense: a beta or the momentum outside [0, 1), an
/// eps that is 0 in fp32, a negative or infinite weight decay or learning rate factor, Nesterov without
/// momentum.
void validate(const OptimizerOptions& options);

/// Applies the groups to the parameters; one that requires no gradient is frozen in any group. Throws
/// ConfigError for a pattern that matches no parameter (naming near ones), for a group whose parameters all
/// belong to earlier groups, for a weight decay that reaches no parameter of its group, and if no parameter
/// trains.
[[nodiscard]] GroupedParameters apply_groups(const NamedTensors& parameters, const OptimizerOptions& options);

/// What the engine and the checkpoints need of an optimizer. Derive from it to bring your own, and hand
/// EngineOptions::make_optimizer a function that makes it.
class Optimizer {
 public:
  /// The tensors stay the caller's. Names are unique, and a shared tensor is listed once.
  explicit Optimizer(std::vector<TrainedParameter> parameters);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update from the parameters' .grad with learning rate lr, times each parameter's lr_factor. Leaves a
  /// parameter without a gradient alone, its state too. If found_inf (0-dim fp32, on the device of the
  /// parameters) is 1, changes nothing. Should not wait for the device.
  virtual void step(double lr, const at::Tensor& found_inf) = 0;

  /// All that step() remembers, named "<parameter>.<what>", in a fixed order. The tensors share memory with
  /// the optimizer: a checkpoint reads them, and a resume copies into them. Number, names, shapes and types
  /// never change.
  [[nodiscard]] virtual NamedTensors state() const = 0;

  /// Bytes of state().
  [[nodiscard]] int64_t state_bytes() const;

  /// The parameters it trains, with their names; frozen ones are not among them.
  [[nodiscard]] const NamedTensors& parameters() const { return named_; }
  /// The same parameters, in the same order, with what their groups say.
  [[nodiscard]] const std::vector<TrainedParameter>& trained() const { return trained_; }

 private:
  std::vector<TrainedParameter> trained_;
  NamedTensors named_;
};

/// Makes an optimizer over the parameters that train.
using OptimizerFactory = std::function<std::unique_ptr<Optimizer>(std::vector<TrainedParameter> parameters)>;

/// The optimizer that options.kind names. Its state is "<parameter>.exp_avg", ".exp_avg_sq" and ".step"
/// (0-dim fp32), or ".momentum_buffer" (nothing without momentum).
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(std::vector<TrainedParameter> parameters,
                                                        const OptimizerOptions& options);

}  // namespace gradstep
