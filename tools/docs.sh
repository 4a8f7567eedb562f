#!/usr/bin/env bash
# Writes what is made from the program's tables and from the public headers: docs/cli.md, and the API reference in build/docs/api/. --api writes only
# the reference, which needs no build. Fails if a public declaration has no comment, or one that Doxygen does not understand.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/setup.sh docs
if [[ ${1:-} != --api ]]; then
  tools/build.sh
  build/gradstep --help-markdown >docs/cli.md
  say "wrote docs/cli.md"
fi
# Pages of headers that are gone must not stay.
rm -rf build/docs/api
mkdir -p build/docs
doxygen docs/Doxyfile || fail 1 "docs: give each public declaration a /// comment, and correct those named above"
say "wrote build/docs/api/index.html"
