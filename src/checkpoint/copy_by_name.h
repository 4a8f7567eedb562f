// Copies stored tensors into live ones that bear the same names.
#pragma once

#include <string>

#include "gradstep/step/optimizer.h"

namespace gradstep {

// Every live tensor gets the values of the stored one of its name; order does not matter. `where` begins the
// message. Throws CheckpointError naming a tensor that is missing, of another shape or type, or one too many;
// nothing is copied then.
void copy_by_name(const std::string& where, const NamedTensors& stored, const NamedTensors& live);

// Says why `stored` tensors cannot be copied into `live` ones: names the first that has another name, type
// or shape, or that only one side has. The order counts too. Empty: they can.
[[nodiscard]] std::string check_parameters(const NamedTensors& stored, const NamedTensors& live);

}  // namespace gradstep
