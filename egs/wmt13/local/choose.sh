#!/usr/bin/env bash
# choose.sh DATA EXP METRIC LENGTHS SYSTEM FEATURE=SCORES...: tune the weights of SYSTEM on the lists of dev for METRIC, and choose from dev
# and test with them: EXP/{tune,rescore}/SYSTEM. LENGTHS are features of the hypotheses' lengths, SCORES directories with dev.scores and
# test.scores.
set -euo pipefail
data=$1 exp=$2 metric=$3 lengths=(--lengths) system=$5
[[ $4 != none ]] || lengths=(--no-words)
read -ra further <<<"${4#none}"

for set in dev test; do
  what=(--nbest "$data/$set/nbest.jsonl")
  for column in "${@:6}"; do
    what+=(--scores "$column/$set.scores")
  done
  [[ $set = test ]] ||
    lmtools tune "${what[@]}" --metric "$metric" "${lengths[@]}" "${further[@]}" --out "$exp/tune/$system/weights.json"
  lmtools rescore "${what[@]}" --weights "$exp/tune/$system/weights.json" --out "$exp/rescore/$system/$set.txt"
done
