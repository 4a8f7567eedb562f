// What --model and --dataset choose from.
#include "program/recipes.h"

namespace gradstep {

App gradstep_app() {
  App app("gradstep");
  app.model<MlpRecipe>("mlp");
  app.dataset<NamedData>("fashion-mnist", "fashion-mnist");
  app.dataset<NamedData>("mnist", "mnist");
  app.dataset<NamedData>("cifar10", "cifar10");
  app.command(fetch_command());
  return app;
}

}  // namespace gradstep
