# Shared by the scripts in tools/: strict mode, the repository's root as working folder, and how they speak.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'gradstep: %s\n' "$*"; }
# fail CODE TEXT: one line on stderr that says what and what to do.
fail() {
  printf 'gradstep: %s\n' "$2" >&2
  exit "$1"
}

# The command of the newest clang++ from 16 on; older ones cannot read libstdc++ 12's ranges.
find_clang() {
  local name
  for name in clang++-{22,21,20,19,18,17,16} clang++; do
    if command -v "$name" >/dev/null && [[ $("$name" -dumpversion) =~ ^(1[6-9]|[2-9][0-9]) ]]; then
      echo "$name"
      return
    fi
  done
  fail 2 "no clang++ from 16 on: sudo apt-get install clang-19 libclang-rt-19-dev"
}

# Jobs for compilers: cores, but at most one per 2 GB of free memory (torch headers are large). JOBS=N overrides.
num_jobs() {
  if [[ -n ${JOBS:-} ]]; then
    echo "$JOBS"
    return
  fi
  local cores gigabytes
  cores=$(nproc)
  gigabytes=$(awk '/^MemAvailable:/ { print int($2 / 2000000) }' /proc/meminfo)
  if ((gigabytes < 1)); then gigabytes=1; fi
  echo $((cores < gigabytes ? cores : gigabytes))
}
