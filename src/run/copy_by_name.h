// Copies stored tensors into live ones that bear the same names.
#pragma once

#include <string>

#include "gradstep/step/optimizer.h"

namespace gradstep {

// Throws CheckpointError naming a tensor that is missing, of another shape or type, or one too many. `where`
// begins the message. Order does not matter.
void check_names(const std::string& where, const NamedTensors& stored, const NamedTensors& live);

// check_names(), then every live tensor gets the values of the stored one of its name (case C12).
void copy_by_name(const std::string& where, const NamedTensors& stored, const NamedTensors& live);

}  // namespace gradstep
