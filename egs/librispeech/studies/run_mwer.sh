#!/usr/bin/env bash
# LMs trained on N-best lists of real speech to lower the word error rate
# (docs/training-rescorers.md): the LMs of run.sh as they are, and trained from lists (MWER),
# beside an n-gram in the first pass. Lists of training, of dev, which tunes all weights and stops
# each training, and of test. Another seed: --train-opts seed=2 --expdir exp/mwer2.
#
#   ./run.sh --stop-stage 4 && studies/run_mwer.sh

# shellcheck disable=SC2086  # options of several words are split
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

nbest_dir=mini-real/ocean # lists: train, dev and test.nbest.jsonl.xz in it, with the score am
depth=9           # hypotheses of a list of training, the first ones: as many as lists of dev have
lm_dir=exp/lm     # LMs by name, ngram and those of `lms` among them
lms="tta causal"  # LMs that are rescored with as they are
runs="tta@mwer causal@mwer" # LM @ lists.loss
scale=0.15        # weight of an LM's score in training, that of am is 1
train_opts="lists.sample=8 optim.lr=2e-4" # key=value settings over conf/mwer.yaml
nj=2              # processes that train or score at a time
expdir=exp/mwer   # for lists, models and results
options "$@"

if stage 1 "first pass with the n-gram" $nbest_dir/{train,dev,test}.nbest.jsonl.xz $lm_dir/ngram \
  : $expdir/weights.json $expdir/{train,dev,test}.nbest.jsonl; then
  lmtools convert $nbest_dir/train.nbest.jsonl.xz $expdir/lists/train.jsonl --depth $depth
  lmtools convert $nbest_dir/dev.nbest.jsonl.xz $expdir/lists/dev.jsonl
  lmtools convert $nbest_dir/test.nbest.jsonl.xz $expdir/lists/test.jsonl
  for set in train dev test; do
    lmtools score --nbest $expdir/lists/$set.jsonl --lm $lm_dir/ngram --out $expdir/$set.ngram.scores
  done
  lmtools tune --nbest $expdir/lists/dev.jsonl --scores ngram=$expdir/dev.ngram.scores \
    --out $expdir/weights.json
  for set in train dev test; do
    lmtools rescore --nbest $expdir/lists/$set.jsonl --scores ngram=$expdir/$set.ngram.scores \
      --weights $expdir/weights.json --out $expdir/first/$set.txt \
      --nbest-out $expdir/$set.nbest.jsonl
  done
fi

if stage 2 "train on lists" ../../conf/mwer.yaml $expdir/{train,dev}.nbest.jsonl : $expdir/lm; then
  for run in $runs; do
    echo --conf ../../conf/mwer.yaml --init $lm_dir/${run%@*} --train $expdir/train.nbest.jsonl \
      --valid $expdir/dev.nbest.jsonl --out $expdir/lm/$run lists.loss=${run#*@} \
      lists.scale=$scale $train_opts
  done | each lmtools train
fi

if stage 3 "tune and rescore" $expdir/lm : $expdir/rescored; then
  for run in $runs; do
    lmtools rescue --dev $nbest_dir/dev.nbest.jsonl.xz --test $nbest_dir/test.nbest.jsonl.xz \
      --lm ngram=$lm_dir/ngram --lm trained=$expdir/lm/$run --out $expdir/rescored/$run
  done
  for lm in $lms; do
    lmtools rescue --dev $nbest_dir/dev.nbest.jsonl.xz --test $nbest_dir/test.nbest.jsonl.xz \
      --lm ngram=$lm_dir/ngram --lm trained=$lm_dir/$lm --out $expdir/rescored/$lm
  done
fi
