#!/usr/bin/env bash
# The T-TA paper's rows of BERT beside those of run.sh, which has to have run: a BERT is trained on
# the same text, its vectors are compared with the same judgements, and it rescores the same lists.

# shellcheck disable=SC2086  # paths and options are words without blanks
cd "$(dirname "$0")" && . ../../utils/recipe.sh

conf=conf          # directory with bert.yaml
train_opts=        # key=value settings over it, as in steps=100
precision=auto     # of matrix products: auto, float32 or bfloat16
nj=2               # processes that score at a time; 1 with a GPU
corpus=mini        # that of run.sh
datadir=data       # that of run.sh
expdir=exp         # that of run.sh
options "$@"

if stage 3 "train BERT" $expdir/{train,valid}.bin $conf/bert.yaml conf ../../conf \
  : $expdir/lm/bert/model.safetensors; then
  echo --conf $conf/bert.yaml --train $expdir/train.bin --valid $expdir/valid.bin \
    --out $expdir/lm/bert $train_opts | each lmtools train
fi

if stage 4 "score: vectors, similarity, lists" conf/{experiment,paper}.yaml \
  $expdir/lm/{causal,masked,tta,bert}/model.safetensors $datadir/sentences.txt \
  $datadir/{dev,test}/{pairs.tsv,nbest.jsonl} : $expdir/score/bert/{dev,test}.scores \
  $expdir/sts/{bert,bert-masked,bert-cls}/{dev,test}.json; then
  lmtools embed --experiment conf/paper.yaml --lm "$expdir/lm/{lm}" \
    --text $datadir/sentences.txt --precision $precision --cache $expdir/cache \
    --out "$expdir/embed/{vectors}.npz"
  for set in dev test; do
    lmtools sts --pairs $datadir/$set/pairs.tsv --out "$expdir/sts/{system}/$set.json" \
      --vectors $expdir/embed/{bert,bert-masked,bert-cls}.npz
  done
  score_sets conf/paper.yaml "$expdir/lm/{lm}" $datadir $expdir "dev test"
fi

if stage 5 "tune on dev and rescore test" conf/{experiment,paper}.yaml \
  $datadir/{dev,test}/nbest.jsonl $expdir/score/{causal,masked,tta,bert}/{dev,test}.scores \
  : $expdir/tune/bert/weights.json $expdir/rescore/bert/{dev,test}.txt; then
  rescore_sets conf/paper.yaml $datadir $expdir dev "dev test"
fi

if stage 6 "report" conf/{experiment,paper,report}.yaml $datadir/{dev,test}/nbest.jsonl \
  $expdir/sts/{bert,bert-masked,bert-cls}/{dev,test}.json $expdir/rescore/bert/{dev,test}.txt \
  : $expdir/report/{RESULTS.md,index.html}; then
  lmtools report $expdir --experiment conf/paper.yaml --conf conf/report.yaml \
    --nbest $datadir/{dev,test}/nbest.jsonl --title "${PWD##*/} ($corpus)"
  python3 ../../utils/papers/paper_tables.py $expdir conf/report.yaml conf/papers.yaml
fi
