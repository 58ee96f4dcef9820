#!/usr/bin/env bash
# WMT13, rows of the T-TA paper's Table 2: BERT beside the LMs of run.sh, and each LM by the paper's
# (1 - lambda) first pass + lambda LM.
#
# Starts from what `./run.sh --pair PAIR` left with the same --datadir and --expdir. With a BERT of
# yours in place of a small one that is trained here: --stage 4 --experiment MINE.yaml, which says
# `base: conf/paper.yaml` and `lms: {bert: hf:DIR}`.
# shellcheck disable=SC2086  # train_opts are words; paths have no blanks

cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=mini        # name of the corpus in the report
pair=de-en         # whose lists are scored
conf=conf          # directory with bert.yaml
train_opts=        # key=value settings over bert.yaml, as in steps=100
experiment=conf/paper.yaml # what is scored, combined and tuned
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
nj=3               # processes that score and tune at a time; 1 with a GPU
datadir=data       # of run.sh
expdir=exp         # of run.sh; scores and results go to EXPDIR/PAIR-paper
options "$@"
home=$expdir/$pair-paper

if stage 3 "train BERT" $expdir/english/{train,valid}.bin $conf ../../conf \
  : $expdir/english/lm/bert/model.safetensors; then
  echo --conf $conf/bert.yaml --train $expdir/english/train.bin --valid $expdir/english/valid.bin \
    --out $expdir/english/lm/bert $train_opts | each lmtools train
fi

if stage 4 "score" $expdir/english/lm/ngram $experiment $datadir/english/valid.txt \
  $datadir/$pair/{dev,test}/{nbest.jsonl,text} : $home/{score,ppl}; then
  cache=$expdir/english/cache score_sets $experiment "$expdir/english/lm/{lm}" $datadir/$pair $home "dev test"
  lmtools ppl --experiment $experiment --lm "$expdir/english/lm/{lm}" --precision $precision \
    --cache $expdir/english/cache --text $datadir/english/valid.txt \
    --out "$home/ppl/{lm}/valid.json"
  lmtools ppl --experiment $experiment --lm "$expdir/english/lm/{lm}" --precision $precision \
    --cache $expdir/english/cache --kaldi --text $datadir/$pair/test/text \
    --out "$home/ppl/{lm}/test.json"
fi

if stage 5 "tune on dev and rescore" $experiment $datadir/$pair/{dev,test}/nbest.jsonl $home/score \
  : $home/{tune,rescore}; then
  rescore_sets $experiment $datadir/$pair $home dev "dev test"
fi

if stage 6 "report" $experiment conf/report.yaml $home/{tune,rescore,ppl} \
  $datadir/$pair/{dev,test}/{nbest.jsonl,text} \
  : $home/report/{RESULTS.md,index.html,metrics.md}; then
  ln -sfnrt $home $expdir/english/lm $expdir/english/train.bin $expdir/stages
  lmtools report $home --experiment $experiment --conf conf/report.yaml \
    --nbest $datadir/$pair/{dev,test}/nbest.jsonl --title "${PWD##*/} ($corpus, $pair)"
  python3 ../../utils/papers/paper_tables.py $home conf/report.yaml conf/papers.yaml
  python3 local/metrics.py $experiment $datadir/$pair/test/text $home/rescore \
    $home/report/metrics.md
fi
