#!/usr/bin/env bash
# Call 3, 10 minutes: the second half of the books; pieces become ids; uniLM, biLM and T-TA of the
# paper's size train side by side on the same batches and go on after the call. Their steps come from
# the rate that call 1 measured. Below 150,000 tokens a second each, T-TA and biLM train alone.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
poll_seconds=${poll_seconds:-560} # of this call

begin=$SECONDS
say binarise
pieces=$work/subword
lmtools corpus --text "$work/train-a.txt.xz" "$carried/b/train.txt.xz" --subword "$pieces" \
  --nj "$nj" --out "$work/train.bin"
lmtools corpus --text "$work/valid.txt" --subword "$pieces" --out "$work/valid.bin"
lms=$(python3 benchmarks/gpu/within.py lms "$work/rate.json" "$batch")
say "train $lms"
echo "$lms" >"$work/lms"
for lm in $lms; do
  again=()
  [[ $lm != tta ]] || again=(--again optim.lr=3e-4 --check "$check" --most 6)
  setsid nohup python3 benchmarks/gpu/within.py train "$work/rate.json" "$batch" "$train_seconds" \
    "${again[@]}" --device "$device" --conf "conf/$lm.yaml" --train "$work/train.bin" \
    --valid "$work/valid.bin" --out "$work/lm/$lm" -- "${settings[@]}" "${sizes[@]}" \
    batch.sentences=null batch.tokens="$batch" >"$work/lm/$lm.log" 2>&1 </dev/null &
done
while ((SECONDS - begin < poll_seconds)) && [[ $(jobs -rp) ]]; do
  sleep "$([[ $trial = true ]] && echo 0.2 || echo 10)"
done
tail -qn 1 "$work"/lm/*.log
say end
