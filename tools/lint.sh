#!/usr/bin/env bash
# Checks formats, layering and, with clang-tidy, the files that changed. Shows all findings before it fails.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/setup.sh
failed=()
mapfile -t cpp_files < <(git ls-files --cached --others --exclude-standard -- '*.cpp' '*.h' | while read -r f; do [[ -f $f ]] && echo "$f"; done)
if ! printf '%s\n' "${cpp_files[@]}" | xargs -r -P "$(nproc)" -n 40 .venv/bin/clang-format --dry-run --Werror; then
  failed+=("clang-format (mend it: make format)")
fi
.venv/bin/ruff check --quiet . || failed+=("ruff check")
.venv/bin/ruff format --quiet --check . || failed+=("ruff format (mend it: make format)")
.venv/bin/python tools/check_tree.py || failed+=("tools/check_tree.py")
tools/tidy.sh || failed+=("clang-tidy")

if ((${#failed[@]} > 0)); then
  printf -v list '%s, ' "${failed[@]}"
  fail 1 "lint: ${list%, }"
fi
say "lint is clean"
