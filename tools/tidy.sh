#!/usr/bin/env bash
# Runs clang-tidy: over the sources of src/ that changed (against main on a branch, else uncommitted), within TIDY_SECONDS (120), or with --all over
# every one of them without a limit. A file costs 15-40 s, nearly all of it torch's headers, since clang cannot read gcc's precompiled header.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

limit_seconds=${TIDY_SECONDS:-120}
if [[ ${1:-} == --all ]]; then
  limit_seconds=0
  mapfile -t files < <(git ls-files 'src/*.cpp')
  tools/setup.sh
  tools/configure.sh build -DCMAKE_BUILD_TYPE=Release
else
  base=$(git merge-base HEAD "${TIDY_BASE:-main}" 2>/dev/null || git rev-parse HEAD)
  mapfile -t files < <({
    git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp'
    git ls-files --others --exclude-standard -- 'src/*.cpp'
  } | sort -u)
fi
if ((${#files[@]} == 0)); then exit 0; fi
if [[ ! -f build/compile_commands.json ]]; then
  say "clang-tidy left out: build/ is not configured yet"
  exit 0
fi

commands=$(mktemp -d)
trap 'rm -rf "$commands"' EXIT
.venv/bin/python tools/tidy_commands.py build/compile_commands.json "$commands/compile_commands.json" src/pch.h
tidy=(.venv/bin/clang-tidy -p "$commands" --quiet --warnings-as-errors='*')
# Those that would begin after the limit are named, not run.
export limit_seconds
printf '%s\n' "${files[@]}" | xargs -P "$(num_jobs)" -I {} bash -c '
  file=$1; shift
  start=$1; shift
  if ((limit_seconds > 0 && $(date +%s) - start > limit_seconds)); then
    echo "gradstep: clang-tidy ran out of time before $file (make tidy checks all)"
    exit 0
  fi
  if ! output=$("$@" "$file" 2>&1); then printf "%s\n" "$output"; exit 1; fi
' tidy {} "$(date +%s)" "${tidy[@]}"
