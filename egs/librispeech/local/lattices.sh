#!/usr/bin/env bash
# lattices.sh DIR FORMAT CASE DATA SET...: convert the lattices DIR/SET of a recogniser to SLF files in DATA/SET/lattices, their words in
# CASE (upper, lower, or empty: as they are). A SET written as NAME=A+B is the sets A and B, converted before, together.
set -euo pipefail
dir=$1 format=$2 case=$3 data=$4

for set in "${@:5}"; do
  name=${set%%=*} out=$data/${set%%=*}/lattices
  rm -rf "$out"
  if [[ $set = *=* ]]; then
    mkdir -p "$out"
    parts=${set#*=}
    for part in ${parts//+/ }; do
      cp "$data/$part/lattices/"* "$out"
    done
  else
    found=("$dir/$name" "$dir/$name".*)
    [[ -e ${found[0]} || -e ${found[1]-} ]] ||
      { echo "$dir: no lattices of $name; put them in $dir/$name, a file with any suffix or a directory" >&2 && exit 1; }
    [[ -e ${found[0]} ]] || found=("${found[1]}")
    lmtools convert "${found[0]}" "$out" --format "$format" --to slf ${case:+--case "$case"}
  fi
done
