// Sets the program whose recipes and commands a test speaks of to gradstep.
#pragma once

#include "app/program.h"
#include "program/recipes.h"

namespace gradstep::testing {

inline App& gradstep_under_test() {
  static App app = gradstep_app();
  return app;
}

inline const bool kProgramIsSet = [] {
  set_program(AppAccess::program(gradstep_under_test()));
  return true;
}();

}  // namespace gradstep::testing
