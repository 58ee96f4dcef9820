#!/usr/bin/env bash
# join.sh DATADIR OUT SET...: the lists and references of several sets, one after the other, in
# DATADIR/OUT.
set -euo pipefail
cd "$1"
out=$2 sets=("${@:3}")

mkdir -p "$out"
for file in text nbest.jsonl; do
  cat "${sets[@]/%//$file}" >"$out/$file"
done
