#!/usr/bin/env bash
# Writes the pages of docs/ that are made from the program's own tables.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/build.sh
build/gradstep --help-markdown >docs/cli.md
say "wrote docs/cli.md"
