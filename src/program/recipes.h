// The program gradstep.
#pragma once

#include "gradstep/app/app.h"

namespace gradstep {

[[nodiscard]] App gradstep_app();

}  // namespace gradstep
