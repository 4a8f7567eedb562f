// Sets the program whose recipes and commands a test speaks of to gradstep.
#pragma once

#include "app/program.h"
#include "program/recipes.h"

namespace gradstep::testing {

inline const App& gradstep_under_test() {
  static const App app = gradstep_app();
  return app;
}

inline const bool kProgramIsSet = [] {
  set_program(gradstep_under_test().parts());
  return true;
}();

}  // namespace gradstep::testing
