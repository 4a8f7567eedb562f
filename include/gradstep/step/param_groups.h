// Parameter groups: parameters that a pattern of their names picks out, with a learning rate, a weight decay
// or a rest of their own.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gradstep {

/// Tensors by name, in a fixed order.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

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

}  // namespace gradstep
