// The program gradstep, and what it is made of: each file here adds its models, data sets or commands.
#pragma once

#include "gradstep/app/app.h"

namespace gradstep {

void add_mlp(App& app);         // --model mlp
void add_named_data(App& app);  // --dataset, by the names that load_dataset() knows
void add_fetch(App& app);       // gradstep fetch

[[nodiscard]] App gradstep_app();

}  // namespace gradstep
