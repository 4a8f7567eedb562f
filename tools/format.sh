#!/usr/bin/env bash
# Rewrites C++ and Python sources in the house format.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/setup.sh
git ls-files -z --cached --others --exclude-standard -- '*.cpp' '*.h' |
  while IFS= read -r -d '' file; do if [[ -f $file ]]; then printf '%s\0' "$file"; fi; done |
  xargs -0 -r .venv/bin/clang-format -i
.venv/bin/ruff check --quiet --fix --select I .
.venv/bin/ruff format --quiet .
say "formatted"
