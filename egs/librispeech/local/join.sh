#!/usr/bin/env bash
# join.sh OUT SET...: the lists, references and lattices of several sets, one after the other, in
# OUT.
set -euo pipefail
out=$1 sets=("${@:2}")

mkdir -p "$out"
for file in text nbest.jsonl; do
  cat "${sets[@]/%//$file}" >"$out/$file"
done
if [[ -e ${sets[0]}/lattices ]]; then
  rm -rf "$out/lattices" && mkdir "$out/lattices"
  for set in "${sets[@]}"; do
    cp "$set"/lattices/* "$out/lattices"
  done
fi
