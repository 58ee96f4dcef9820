#!/usr/bin/env bash
# join.sh ONE OTHER OUT: the lists, references and lattices of two sets, one after the other, in
# OUT.
set -euo pipefail

mkdir -p "$3"
for file in text nbest.jsonl; do
  cat "$1/$file" "$2/$file" >"$3/$file"
done
if [[ -e $1/lattices ]]; then
  rm -rf "$3/lattices" && mkdir "$3/lattices"
  cp "$1"/lattices/* "$2"/lattices/* "$3/lattices"
fi
