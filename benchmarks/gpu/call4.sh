#!/usr/bin/env bash
# Call 4, up to 10 minutes: waits for the trainings, then scores lists, measures perplexity and
# similarity, and times the three on real lists. A training that has not ended is not reported.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
wait_seconds=${wait_seconds:-400}
hypotheses=2000
[[ $trial = false ]] || hypotheses=4

begin=$SECONDS lms=
read -ra wanted <"$work/lms"
for lm in "${wanted[@]}"; do
  while [[ ! -e $work/lm/$lm.done ]] && ((SECONDS - begin < wait_seconds)); do sleep 1; done
  if [[ -e $work/lm/$lm.done ]]; then
    lms+=" $lm"
  else
    echo "$lm: has not ended; it is not reported"
  fi
  tail -n 1 "$work/lm/$lm.log"
done
rm -rf "$work/scores"
mkdir -p "$work/scores"
jobs=()
for lm in $lms; do # at once: each leaves the GPU idle while the host works
  (
    for list in "$work"/lists/*.jsonl; do
      name=${list##*/}
      lmtools score --lm "$work/lm/$lm" --nbest "$list" --device "$device" --precision float32 \
        --out "$work/scores/$lm.${name%.jsonl}.scores"
    done
    for text in "$work"/texts/*.txt; do
      name=${text##*/}
      lmtools ppl --lm "$work/lm/$lm" --text "$text" --device "$device" \
        --out "$work/scores/$lm.${name%.txt}.ppl.json"
    done
    for pairs in "$work"/pairs/*.tsv; do
      name=${pairs##*/}
      lmtools sts --lm "$work/lm/$lm" --pairs "$pairs" --layer all --device "$device" \
        --out "$work/scores/$lm.${name%.tsv}.sts.json"
    done
    cp "$work/lm/$lm/metrics.jsonl" "$work/scores/$lm.metrics.jsonl"
    cp "$work/lm/$lm.done" "$work/scores/$lm.done.json"
  ) &
  jobs+=("$!")
done
failed=0
for job in "${jobs[@]}"; do wait "$job" || failed=1; done
say "speed on lists"
first=$(find "$work/lists" -name '*.jsonl' | sort | head -n 1)
named=()
for lm in $lms; do named+=(--lm "$lm=$work/lm/$lm"); done
bench lists "${named[@]}" --nbest "$first" --hypotheses "$hypotheses" --device "$device" \
  --out "$work/scores/lists.json"
tar -cJf "$out/scores.tar.xz" -C "$work" scores
say end
exit "$failed" # of what could not be scored the errors are above; the rest is packed
