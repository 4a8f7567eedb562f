// The entry point of the program gradstep.
// no torch
#include "cli/app.h"
#include "gradstep/base/allocator.h"

int main(int argc, char** argv) {
  gradstep::keep_freed_memory();
  return gradstep::run_app(argc, argv);
}
