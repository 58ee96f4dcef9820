#!/usr/bin/env bash
# choose.sh DATA EXP METRIC TOLERANCE LENGTHS SYSTEM FEATURE=SCORES...: tune SYSTEM's weights on the lists of dev for METRIC, choose from dev
# and test with them: EXP/{tune,rescore}/SYSTEM. LENGTHS are features of the hypotheses' lengths, SCORES directories with dev.scores and
# test.scores.
set -euo pipefail
data=$1 exp=$2 how=(--metric "$3" --tolerance "$4") lengths=(--lengths) system=$6
[[ $5 != none ]] || lengths=(--no-words)
read -ra further <<<"${5#none}"

for set in dev test; do
  what=(--nbest "$data/$set/nbest.jsonl")
  for column in "${@:7}"; do
    what+=(--scores "$column/$set.scores")
  done
  [[ $set = test ]] ||
    lmtools tune "${what[@]}" "${how[@]}" "${lengths[@]}" "${further[@]}" --out "$exp/tune/$system/weights.json"
  lmtools rescore "${what[@]}" --weights "$exp/tune/$system/weights.json" --out "$exp/rescore/$system/$set.txt"
done
