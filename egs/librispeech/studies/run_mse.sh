#!/usr/bin/env bash
# Mean squared error as a training criterion of word LMs (Gao et al. 2021, section 4 and its
# footnote): of linear outputs and through a sigmoid, with the terms of the words that are not the
# target whole and scaled down, by several learning rates, from the start and from a converged NCE
# model. Beside it CE, full BCE and NCE, and NCE trained as long again: what a start from NCE gives
# by itself. Perplexities alone. It takes the words and binarised text of run_words.sh:
#
#   ./run.sh --stop-stage 1 && studies/run_words.sh --lattices "" --stop-stage 2 && studies/run_mse.sh
#
# A run that was stopped goes on: trainings that are complete are left as they are. Another seed:
# --train-opts seed=2 --expdir exp/mse2.

# shellcheck disable=SC2086  # options of several words are split
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

runs="mse-sigmoid@8e-3 mse-sigmoid-rival@8e-3 mse@8e-3 mse-rival@8e-3 mse-sigmoid@2e-3 mse@2e-3"
                  # LM of studies/conf/words_mse @ learning rate
continued="mse-sigmoid@2e-3 mse@2e-3 bce-nce@2e-3" # those that start from the NCE model
train_opts=       # key=value settings over the files of conf, as in steps=100
precision=auto    # of matrix products in scoring: auto, float32 or bfloat16
nj=2              # processes that train at a time
datadir=data      # with test/text, of run.sh
words=exp/words   # with subword, train.bin and valid.bin, of run_words.sh
expdir=exp/mse    # for models and results
options "$@"

if stage 3 "train CE, BCE and NCE" studies/conf/words studies/conf/words_mse studies/conf/word ../../conf \
  $words/{train,valid}.bin : $expdir/lm/{softmax,bce,bce-nce}/model.safetensors; then
  for lm in softmax bce bce-nce; do
    echo --conf studies/conf/words_mse/$lm.yaml --train $words/train.bin --valid $words/valid.bin \
      --out $expdir/lm/$lm $train_opts
  done | each lmtools train
fi

if stage 4 "train MSE" studies/conf/words studies/conf/words_mse studies/conf/word ../../conf $words/{train,valid}.bin \
  $expdir/lm/bce-nce/model.safetensors : $expdir/lm; then
  {
    for run in $runs; do
      echo --conf studies/conf/words_mse/${run%@*}.yaml --train $words/train.bin \
        --valid $words/valid.bin --out $expdir/lm/$run $train_opts optim.lr=${run#*@}
    done
    for run in $continued; do
      echo --conf studies/conf/words_mse/${run%@*}.yaml --train $words/train.bin \
        --valid $words/valid.bin --out $expdir/lm/nce-$run --init $expdir/lm/bce-nce \
        $train_opts optim.lr=${run#*@}
    done
  } | each lmtools train
fi

if stage 5 "perplexities" $expdir/lm/{softmax,bce,bce-nce}/model.safetensors $datadir/test/text \
  : $expdir/ppl $expdir/perplexities.md; then
  for lm in softmax bce bce-nce $runs; do
    lmtools ppl --lm $expdir/lm/$lm --kaldi --text $datadir/test/text --precision $precision \
      --out $expdir/ppl/$lm/test.json
  done
  for run in $continued; do
    lmtools ppl --lm $expdir/lm/nce-$run --kaldi --text $datadir/test/text \
      --precision $precision --out $expdir/ppl/nce-$run/test.json
  done
  python3 studies/local/mse_table.py $expdir/lm $expdir/ppl $expdir/perplexities.md
fi
