#!/usr/bin/env bash
# score_hub5.sh DATADIR EXPDIR [GLM [STM SEGMENTS]]: score what EXPDIR/rescore/SYSTEM/SET.txt holds as
# NIST scores hub5, by the rules of GLM, into EXPDIR/scored/SYSTEM/SET.json, which the report prints.
# Of test with STM, the texts are words in the times of SEGMENTS, and each label has its figures;
# else references are DATADIR/SET/text. Without GLM there is nothing to do.
set -euo pipefail
data=$1 exp=$2 glm=${3-} stm=${4-} segments=${5-}
mkdir -p "$exp/scored"
if [[ $stm && ! $segments ]]; then
  echo "score_hub5.sh: $stm: has the times of recordings; give Kaldi's segments after it" >&2
  exit 1
fi
[[ $glm ]] || exit 0
for set in test swb ch; do
  for text in "$exp"/rescore/*/"$set.txt"; do
    system=$(basename "$(dirname "$text")")
    out=$exp/scored/$system
    mkdir -p "$out"
    if [[ $set = test && $stm ]]; then
      python3 studies/local/to_ctm.py "$text" "$segments" "$out/$set.ctm"
      lmtools evaluate --ref "$stm" --hyp "$out/$set.ctm" --glm "$glm" --by label \
        --out "$out/$set.json"
    else
      lmtools evaluate --ref "$data/$set/text" --hyp "$text" --glm "$glm" --out "$out/$set.json"
    fi
  done
done
