#!/usr/bin/env bash
# Builds, then trains the reference job into runs/first; what was begun there is gone on with. Further words go to gradstep train.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/build.sh
case " $* " in
  *" --resume"*) resume=() ;;
  *) resume=(--resume auto) ;;
esac
case " $* " in
  *" -o "* | *" --output-dir"*) exec build/gradstep train --epochs 3 "${resume[@]}" "$@" ;;
  *) exec build/gradstep train --epochs 3 -o runs/first "${resume[@]}" "$@" ;;
esac
