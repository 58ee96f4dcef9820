#!/usr/bin/env bash
# score_hub5.sh EXPDIR [GLM STM SEGMENTS]: score the texts of test, EXPDIR/rescore/SYSTEM/test.txt, as
# NIST scores hub5, by NIST's hubscr.pl (Debian: apt install sctk), into EXPDIR/scored/SYSTEM. The
# texts are words in the times of SEGMENTS, Kaldi's. Without GLM or hubscr.pl there is nothing to do.
set -euo pipefail
exp=$1 glm=${2-} stm=${3-} segments=${4-}
mkdir -p "$exp/scored"
[[ $glm ]] || exit 0
if [[ ! $segments ]]; then
  echo "score_hub5.sh: $glm: give NIST's stm of test, and Kaldi's segments, after it" >&2
  exit 1
fi
PATH=$PATH:/usr/lib/sctk/bin # Debian's
if ! command -v hubscr.pl > /dev/null; then
  echo "score_hub5.sh: hubscr.pl is not installed (Debian: apt install sctk); nothing is scored" >&2
  exit 0
fi
for text in "$exp"/rescore/*/test.txt; do
  system=$(basename "$(dirname "$text")")
  out=$exp/scored/$system
  mkdir -p "$out"
  cp "$stm" "$out/ref.stm" # hubscr.pl writes beside it
  python3 studies/local/to_ctm.py "$text" "$segments" "$out/test.ctm"
  hubscr.pl -g "$glm" -l english -h hub5 -r "$out/ref.stm" "$out/test.ctm" > "$out/log" 2>&1 ||
    { cat "$out/log" >&2 && exit 1; }
  echo "$system: $(grep -m1 Sum/Avg "$out/test.ctm.filt.sys")"
done
