#!/usr/bin/env bash
# Builds the program and kills a run a hundred times: its end must equal that of an unbroken one. Words go to tests/soak/kill_soak.py.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/build.sh
GRADSTEP_BUILD_DIR=build PYTHONDONTWRITEBYTECODE=1 exec .venv/bin/python tests/soak/kill_soak.py "$@"
