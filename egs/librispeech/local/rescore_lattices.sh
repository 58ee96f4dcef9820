#!/usr/bin/env bash
# rescore_lattices.sh SYSTEM DATA EXP OPTIONS NAME=LM... : SET...: rescore DATA/SET/lattices with the LMs, take N-best lists out of them,
# tune the weights on those of the first set, and choose from all with these weights: EXP/{lattice,tune,rescore}.
set -euo pipefail
system=$1 data=$2 exp=$3
read -ra options <<<"$4"
shift 4
lms=()
while [[ $1 != : ]]; do
  lms+=("$1")
  shift
done
shift

depth=100 # hypotheses taken from a lattice
scale=10  # weight of the LMs together before it is tuned, beside the acoustic score's 1
tuned=$exp/tune/lattice-$system/weights.json by=am=1
for lm in "${lms[@]}"; do
  by+=,${lm%%=*}=$((scale / ${#lms[@]}))
done
for set in "$@"; do
  out=$exp/lattice/$system/$set
  lmtools lattice rescore "$data/$set/lattices" --format slf "${lms[@]/#/--lm=}" --weights "$by" "${options[@]}" --depth "$depth" \
    --ref "$data/$set/text" --nbest-out "$out.jsonl" --report "$out.json"
  [[ $by = "$tuned" ]] || lmtools tune --nbest "$out.jsonl" --metric wer --out "$tuned"
  by=$tuned
  lmtools rescore --nbest "$out.jsonl" --weights "$tuned" --out "$exp/rescore/lattice-$system/$set.txt"
done
