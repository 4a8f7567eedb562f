# Shared by the scripts in tools/: strict mode, the repository's root as working folder, and how they speak.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'gradstep: %s\n' "$*"; }
# fail CODE TEXT: one line on stderr that says what and what to do.
fail() {
  printf 'gradstep: %s\n' "$2" >&2
  exit "$1"
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
