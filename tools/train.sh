#!/usr/bin/env bash
# Builds, then trains the reference job into runs/first, unless that has been done. Further words go to gradstep train.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/build.sh
if (($# == 0)) && [[ -e runs/first ]]; then
  # The last row of a run says how it ended.
  if tail -n 1 runs/first/metrics.jsonl 2>/dev/null | grep -q '"event":"end".*"reason":"\(done\|early stop\)"'; then
    say "runs/first/model.safetensors is there already; to train again: rm -r runs/first && make train"
    exit 0
  fi
  say "runs/first holds a run that did not come to its end; to train again: rm -r runs/first && make train"
  exit 2
fi
case " $* " in
  *" -o "* | *" --output-dir"*) exec build/gradstep train --epochs 3 "$@" ;;
  *) exec build/gradstep train --epochs 3 -o runs/first "$@" ;;
esac
