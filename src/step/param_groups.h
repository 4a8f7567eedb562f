// Which parameter belongs to which group, and what trains.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gradstep/step/optimizer.h"

namespace gradstep {

// Parameters sorted into those that train and those that rest.
struct GroupedParameters {
  std::vector<TrainedParameter> trained{};  // in the order of the parameters
  NamedTensors frozen{};                    // likewise
};

// True if `pattern` matches all of `name`: see ParamGroup::pattern.
[[nodiscard]] bool matches(const std::string& pattern, const std::string& name);

// The index of the group that parameter `name` belongs to, which is the first that matches; nothing if it
// belongs to none.
[[nodiscard]] std::optional<size_t> group_of(const std::string& name, const std::vector<ParamGroup>& groups);

// Applies the groups to the parameters. A parameter that requires no gradient is frozen, whatever its group
// says. Throws ConfigError for a pattern that matches no parameter (naming near ones), for a group whose
// parameters all belong to earlier groups, for a weight decay that reaches no parameter of its group, and if
// no parameter trains.
[[nodiscard]] GroupedParameters apply_groups(const NamedTensors& parameters, const OptimizerOptions& options);

}  // namespace gradstep
