// What --model and --dataset choose from, in the order of the help; the first ones are the defaults.
// no torch
#include "program/recipes.h"

namespace gradstep {

App gradstep_app() {
  App app("gradstep");
  add_mlp(app);
  add_named_data(app);
  add_fetch(app);
  return app;
}

}  // namespace gradstep
