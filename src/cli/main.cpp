// The entry point of the program gradstep.
// no torch
#include "cli/app.h"

int main(int argc, char** argv) { return gradstep::run_app(argc, argv); }
