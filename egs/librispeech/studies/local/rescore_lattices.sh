#!/usr/bin/env bash
# rescore_lattices.sh SYSTEM DATADIR EXPDIR "SET..." OPTION...: rescore the lattices of each set, dev
# first, with the LMs in OPTION (lmtools lattice rescore): dev's lattices by weights by hand, lists
# out of them tune the weights of the other sets. Lists, reports, weights and chosen texts are in
# EXPDIR.
set -euo pipefail
system=$1 data=$2 exp=$3 sets=$4 options=("${@:5}")

lms=()
for ((i = 1; i < ${#options[@]}; i++)); do
  [[ ${options[i - 1]} != --lm ]] || lms+=("${options[i]%%=*}")
done
weights=am=1
for name in "${lms[@]}"; do
  weights+=,$name=$((10 / ${#lms[@]}))
done
for set in $sets; do
  lists=$exp/lattice/$system/$set
  lmtools lattice rescore "$data/$set/lattices" --format slf "${options[@]}" --depth 100 \
    --weights "$weights" --ref "$data/$set/text" --nbest-out "$lists.jsonl" --report "$lists.json"
  weights=$exp/tune/lattice-$system/weights.json
  [[ $set != dev ]] || lmtools tune --nbest "$lists.jsonl" --metric wer --out "$weights"
  lmtools rescore --nbest "$lists.jsonl" --weights "$weights" \
    --out "$exp/rescore/lattice-$system/$set.txt"
done
