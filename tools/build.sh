#!/usr/bin/env bash
# Installs what is missing, configures, and builds: the program, or the ninja targets named ("all" for tests too).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/setup.sh
tools/configure.sh build -DCMAKE_BUILD_TYPE=Release
if (($# == 0)); then set -- gradstep_program; fi
ninja -C build -j "$(num_jobs)" "$@"
say "build/gradstep is up to date"
