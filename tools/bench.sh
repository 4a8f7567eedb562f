#!/usr/bin/env bash
# Builds the benchmarks and runs bench/run.py. Further words go to it.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/build.sh gradstep_bench
exec .venv/bin/python bench/run.py "$@"
