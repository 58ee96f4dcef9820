#!/usr/bin/env bash
# Throughput and responsiveness (Table 4 of Dauphin et al. 2017) of the LMs that run.sh left.
#
# --bench-opts --published measures LSTM-2048, GCNN-9 and GCNN-8 Bottleneck at their published
# sizes too, with random weights; "--lm NAME=DIR" another LM, such as a run of run_grids.sh.

# shellcheck disable=SC2086  # bench_opts are words; paths have no blanks
cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=mini        # name of the text in the report
bench_opts="--seconds 0.2" # options of benchmarks/bench.py lm, as in "--device cuda"
precision=auto     # of matrix products: auto, float32 or bfloat16
datadir=data       # where prepared data is
expdir=exp         # where models are, for results
options "$@"

if stage 4 "throughput and responsiveness" $datadir/test/text $expdir/lm/kn5/config.yaml \
  $expdir/lm/{lstm,gcnn,elmo-char,esulmo-bpe-500}/model.safetensors : $expdir/bench/lm.json; then
  python3 ../../benchmarks/bench.py lm --lm kn5=$expdir/lm/kn5 --lm lstm=$expdir/lm/lstm \
    --lm gcnn=$expdir/lm/gcnn --lm elmo-char=$expdir/lm/elmo-char --lm esulmo-bpe-500=$expdir/lm/esulmo-bpe-500 \
    --text $datadir/test/text --precision $precision $bench_opts --out $expdir/bench/lm.json
fi

if stage 6 "report" $expdir/bench/lm.json conf/report.yaml \
  : $expdir/report/{RESULTS.md,index.html}; then
  lmtools report $expdir --what lm --conf conf/report.yaml --title "${PWD##*/} ($corpus)"
  python3 ../../utils/papers/paper_tables.py $expdir conf/report.yaml conf/papers.yaml
  python3 local/grid_tables.py $expdir conf/report.yaml conf/papers.yaml
fi
