// What a checkpoint can keep of a user's own values and tensors.
#pragma once

#include "gradstep/model/task.h"

namespace gradstep {

// Throws CheckpointError naming the value or tensor that cannot be stored: not UTF-8, undefined, sparse, of a
// type that safetensors does not have, or with the name of another.
void check_user_state(const UserState& state);

}  // namespace gradstep
