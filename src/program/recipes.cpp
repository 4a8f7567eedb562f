// What --model and --dataset choose from, in the order of the help; the first ones are the defaults.
// no torch
#include "program/recipes.h"

namespace gradstep {

// Each is the last function of a file of this folder.
void add_mlp(App& app);
void add_named_data(App& app);
void add_fetch(App& app);

App gradstep_app() {
  App app("gradstep");
  for (const auto add : {add_mlp, add_named_data, add_fetch}) add(app);
  return app;
}

}  // namespace gradstep
