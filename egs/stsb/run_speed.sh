#!/usr/bin/env bash
# Run time of a sentence's vector by length: LMs of the T-TA paper's size with random weights, one
# sentence at a time. The report of run.sh then has a table and a figure of it, with what the paper
# reads off its Figures 4 to 6.

cd "$(dirname "$0")" && . ../../utils/recipe.sh

lengths=5,10,20,30,40 # words of a sentence
repeats=15         # sentences of each length; their median counts
threads=1          # of the processor
precision=float32  # of matrix products: auto, float32 or bfloat16
device=cpu         # or cuda
corpus=mini        # that of run.sh
datadir=data       # that of run.sh
expdir=exp         # that of run.sh
options "$@"

if stage 4 "score: run time by length" conf/report.yaml : $expdir/bench/speed.json; then
  python3 ../../benchmarks/bench.py score --representation --length $lengths --repeats $repeats \
    --threads $threads --precision $precision --device $device --out $expdir/bench/speed.json
fi

if stage 6 "report" conf/{experiment,report}.yaml $expdir/bench/speed.json \
  $datadir/{dev,test}/nbest.jsonl $expdir/rescore/{causal,masked,tta}/{dev,test}.txt \
  : $expdir/report/{RESULTS.md,index.html}; then
  lmtools report $expdir --experiment conf/experiment.yaml --conf conf/report.yaml \
    --nbest $datadir/{dev,test}/nbest.jsonl --title "${PWD##*/} ($corpus)"
  python3 ../../utils/papers/paper_tables.py $expdir conf/report.yaml conf/papers.yaml
fi
