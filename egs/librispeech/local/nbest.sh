#!/usr/bin/env bash
# nbest.sh DIR FORMAT DEPTH DATA SET...: convert the N-best lists DIR/SET of a recogniser to DATA/SET/nbest.jsonl, DEPTH hypotheses
# each, with the references of DATA/SET/text. A SET written as NAME=A+B is the sets A and B, converted before, one after the other.
set -euo pipefail
. "$(dirname "$0")/../../../utils/nbest.sh"
dir=$1 format=$2 depth=$3 data=$4

for set in "${@:5}"; do
  name=${set%%=*}
  if [[ $set = *=* ]]; then
    mkdir -p "$data/$name"
    for file in text nbest.jsonl; do
      parts=${set#*=}
      IFS=+ read -ra parts <<<"$parts"
      parts=("${parts[@]/#/$data/}")
      cat "${parts[@]/%//$file}" >"$data/$name/$file.tmp"
      mv "$data/$name/$file.tmp" "$data/$name/$file"
    done
  else
    path=$(lists "$dir" "$name")
    lmtools convert "$path" "$data/$name/nbest.jsonl" --format "$format" --to jsonl --ref "$data/$name/text" --depth "$depth"
  fi
done
