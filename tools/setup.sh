#!/usr/bin/env bash
# Installs what is missing: system packages by apt where that is allowed, and .venv. A second call does nothing. setup.sh clang also
# installs what the jobs with clang need, and setup.sh docs what make docs needs.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

jobs=${1:-}

# Prints the first Python from 3.10 on that can make a virtual environment.
find_python() {
  local python
  for python in python3 /usr/bin/python3 python3.13 python3.12 python3.11 python3.10; do
    if "$python" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
      command -v "$python"
      return
    fi
  done
  return 1
}

# probe KIND:ARGUMENT succeeds when that thing is there.
probe() {
  local folder
  case $1 in
    cmd:*) command -v "${1#cmd:}" >/dev/null ;;
    file:*) [[ -e ${1#file:} ]] ;;
    header:*)
      for folder in /usr/include /usr/local/include "/usr/include/$(uname -m)-linux-gnu" ${CPATH:+${CPATH//:/ }}; do
        if [[ -e $folder/${1#header:} ]]; then return 0; fi
      done
      return 1
      ;;
    python) [[ -x .venv/bin/python ]] || find_python >/dev/null ;;
    *) fail 1 "tools/apt-packages.txt: unknown probe $1" ;;
  esac
}

install_packages() {
  local package kind need
  local -a missing=() needed=() as_root=()
  while read -r package kind need; do
    if [[ -z $package || $package == \#* ]] || probe "$kind"; then continue; fi
    if [[ $need != needed && $need != nice && $need != "$jobs" ]]; then continue; fi
    missing+=("$package")
    if [[ $need != nice ]]; then needed+=("$package"); fi
  done <tools/apt-packages.txt
  if ((${#missing[@]} == 0)); then return; fi

  if ((EUID != 0)); then as_root=(sudo -n); fi
  if ! command -v apt-get >/dev/null || ! "${as_root[@]}" true 2>/dev/null; then
    if ((${#needed[@]} > 0)); then
      fail 2 "packages are missing; install them, then run make again: sudo apt-get install ${missing[*]}"
    fi
    say "not needed, but good to have: sudo apt-get install ${missing[*]}"
    return
  fi
  say "installs ${missing[*]}"
  local -a apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
  local log
  log=$(mktemp)
  if "${apt[@]}" update </dev/null >"$log" 2>&1 &&
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >>"$log" 2>&1; then
    rm -f "$log"
    return
  fi
  # A distribution that lacks one of the packages that are only nice to have is no reason to stop.
  if ((${#needed[@]} == 0)) ||
    "${apt[@]}" install -y --no-install-recommends "${needed[@]}" </dev/null >>"$log" 2>&1; then
    say "could not install all of: ${missing[*]} (went on without; see $log)"
    return
  fi
  tail -n 5 "$log" >&2
  fail 2 "apt-get could not install ${missing[*]}: see $log"
}

# The headers of a CUDA wheel need crt/*.h, which come in a package of their own that torch does not ask for.
install_cuda_crt() {
  local python=.venv/bin/python runtime
  runtime=$("$python" - <<'PYTHON'
import importlib.metadata as metadata, importlib.util as util, os
root = util.find_spec("torch").submodule_search_locations[0]
if os.path.exists(os.path.join(root, "lib", "libtorch_cuda.so")):
    names = [d for d in metadata.distributions() if d.metadata["Name"] == "nvidia-cuda-runtime"]
    print(".".join(names[0].version.split(".")[:2]) if names else "")
PYTHON
  )
  if [[ -n $runtime ]]; then
    "$python" -m pip install -q "nvidia-cuda-crt==$runtime.*" </dev/null ||
      say "nvidia-cuda-crt $runtime could not be installed: the build leaves out what needs CUDA headers"
  fi
}

make_venv() {
  local stamp=.venv/gradstep-requirements.txt python
  if cmp -s tools/requirements.txt "$stamp"; then return; fi
  if [[ ! -x .venv/bin/python ]]; then
    python=$(find_python) || fail 2 "no Python from 3.10 on with venv: sudo apt-get install python3-venv"
    say "makes .venv with $("$python" --version)"
    "$python" -m venv .venv
  fi
  say "installs into .venv: $(grep -o '^[a-z].*==[^;]*' tools/requirements.txt | sort -u | tr '\n' ' ')(torch is large)"
  if ! .venv/bin/python -m pip install -q --disable-pip-version-check -r tools/requirements.txt </dev/null; then
    fail 2 "pip could not fill .venv: see above; then run make again"
  fi
  install_cuda_crt
  cp tools/requirements.txt "$stamp"
}

install_packages
make_venv
