#!/usr/bin/env bash
# Builds the commit BASE in build-compare/ and this tree in build/, and compares them in one run. BASE=<commit> bench_compare.sh [words for bench/compare.py]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

if [[ -z ${BASE:-} ]]; then fail 2 "name a commit to compare with: make bench-compare BASE=HEAD~1"; fi
commit=$(git rev-parse --verify --quiet "$BASE^{commit}") || fail 2 "BASE=$BASE is no commit of this repository"
tools/build.sh gradstep_program gradstep_bench

# A worktree of its own, which keeps its build folder: going from one commit to the next compiles what changed.
base=build-compare/base
if [[ ! -e $base/.git ]]; then
  git worktree prune
  git worktree add --quiet --detach "$base" "$commit"
fi
git -C "$base" checkout --quiet --detach "$commit"
ln -sfn "$PWD/.venv" "$base/.venv"
(
  cd "$base"
  tools/configure.sh build -DCMAKE_BUILD_TYPE=Release -DGRADSTEP_BUILD_TESTS=OFF -DGRADSTEP_BUILD_EXAMPLES=OFF
  ninja -C build -j "$(num_jobs)" gradstep_program gradstep_bench
)
exec .venv/bin/python bench/compare.py --base "$base/build" --head build "$@"
