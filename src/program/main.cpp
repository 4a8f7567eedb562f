// The entry point of the program gradstep.
#include "program/recipes.h"

int main(int argc, char** argv) { return gradstep::gradstep_app().run(argc, argv); }
