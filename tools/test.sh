#!/usr/bin/env bash
# Lints, builds everything and runs every test. Further words go to ctest ("-R step").
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/setup.sh
tools/lint.sh
tools/build.sh all
exec ctest --test-dir build --output-on-failure -j "$(nproc)" "$@"
