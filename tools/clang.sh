#!/usr/bin/env bash
# Compiles everything with clang++ in build-clang/, warnings as errors, and runs the unit tests. --syntax only checks each file, which takes minutes.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/setup.sh clang
clang=$(find_clang)
CXX=$clang tools/configure.sh build-clang -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$clang"
if [[ ${1:-} == --syntax ]]; then
  ninja -C build-clang gradstep_pch
  exec .venv/bin/python tools/syntax_check.py build-clang "$(num_jobs)"
fi
ninja -C build-clang -j "$(num_jobs)" all
exec ctest --test-dir build-clang --output-on-failure -j "$(nproc)" -R '^[a-z]+[.][A-Z]' "$@"
