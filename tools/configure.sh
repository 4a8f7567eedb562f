#!/usr/bin/env bash
# Configures build/ (or the folder named first) when that is due, and names the LibTorch in use. Further words go to cmake.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folder=${1:-build}
shift || true
# What the configuration depends on besides the files, which ninja watches itself.
wanted=$(printf '%s\n' "$PWD" "$@" "${CMAKE_PREFIX_PATH:-}" "${Torch_DIR:-}" "${CXX:-}" "${CXXFLAGS:-}")
stamp=$folder/gradstep-configured.txt
if [[ -f $folder/build.ninja && -f $stamp && $(<"$stamp") == "$wanted" ]]; then exit 0; fi

mkdir -p "$folder"
if ! cmake -S . -B "$folder" -G Ninja "$@" >"$folder/configure.log" 2>&1; then
  # Our own errors are one line each; others are shown as they are.
  line=$(grep -m 1 -o 'gradstep error: .*' "$folder/configure.log" || true)
  if [[ -n $line ]]; then fail 2 "${line#gradstep error: }"; fi
  tail -n 30 "$folder/configure.log" >&2
  fail 2 "cmake failed: see $folder/configure.log"
fi
grep -o 'gradstep: .*' "$folder/configure.log" || true
printf '%s\n' "$wanted" >"$stamp"
