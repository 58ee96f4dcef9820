#!/usr/bin/env bash
# Call 2, 4 to 5 minutes, or seconds with `gates=`: the first half of the books is put on the
# machine; gates of WikiText-2 in the printed form, two rates and three seeds (GCNN's Figure 3).
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"
gates=${gates-gates}     # a grid of egs/gbw; empty: none
conf=${conf:-conf/wikitext2} # of its runs
seeds=${seeds:-1 2 3}
few=
[[ $trial = false ]] || few="steps=2 batch.sentences=4 batch.tokens=null"

say unpack
tar -xJf "$carried/small.tar.xz" -C "$work"
cp "$carried/a/train.txt.xz" "$work/train-a.txt.xz"
if [[ $gates ]]; then
  say "$gates"
  rm -rf egs/gbw/{data/gpu,exp/gpu-*}
  mkdir -p egs/gbw/{data,exp}
  cp -r "$work/gbw/data" egs/gbw/data/gpu
  jobs=() failed=0
  for seed in $seeds; do # all at once: each is small, and the GPU waits for the host
    cp -r "$work/gbw/exp" "egs/gbw/exp/gpu-$seed"
    egs/gbw/run_grids.sh --grids "$gates" --conf "$conf" --normaliser none --corpus wikitext2 \
      --datadir data/gpu --expdir "exp/gpu-$seed" --nj 5 --train-opts "seed=$seed $few" \
      --stop-stage 4 >"$work/gates-$seed.log" 2>&1 &
    jobs+=("$!")
  done
  for job in "${jobs[@]}"; do wait "$job" || failed=1; done
  tail -n 2 "$work"/gates-*.log
  (cd egs/gbw/exp && tar -cJf "$out/gates.tar.xz" gpu-*/{ppl,grids})
fi
say end
exit "${failed:-0}"
