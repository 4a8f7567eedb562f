// The entry point of the program gradstep.
#include <cstdlib>

#include "program/recipes.h"

namespace {

// libgomp reads its settings when it is loaded, so they are made before any library starts. Its threads wait
// for each other by spinning, for milliseconds: where another process wants a core too, that costs a time
// slice at the end of each parallel piece. A short spin costs 2-5 % on an idle machine and is 20 to 40 times
// faster on a busy one. A choice of the user's wins.
void shorten_spinning(int, char**, char**) {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "20000", /*overwrite=*/0);
}

__attribute__((section(".preinit_array"), used)) void (*const kBeforeLibraries)(int, char**,
                                                                                char**) = shorten_spinning;

}  // namespace

int main(int argc, char** argv) { return gradstep::gradstep_app().run(argc, argv); }
