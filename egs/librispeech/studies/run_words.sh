#!/usr/bin/env bash
# Training criteria of word LMs, after Gao et al. 2021, On Sampling-Based Training Criteria for
# Neural Language Modeling: LSTMs, Transformers and T-TA trained with each criterion rescore N-best
# lists, alone and with the n-gram, with and without normalisation; three rescore lattices. Text,
# lists and lattices are those of run.sh and run_lattices.sh:
#
#   ./run.sh --stop-stage 1 && studies/run_lattices.sh --stop-stage 1 && studies/run_words.sh
#
# A part is fewer files in --confs and an experiment of fewer columns and systems. The paper's
# sizes, 200,000 words and 42 layers, on a GPU, after the first stages of run_full.sh:
#
#   studies/run_words.sh --corpus full --datadir data/full --expdir exp/words_full --nj 1 \
#     --tests "dev-clean dev-other test-clean test-other" --vocabulary vocab-size=200000 --order 5 \
#     --confs "studies/conf/words_full/*.yaml" --experiment studies/conf/words_full.yaml --lattices "" \
#     --oov-penalty 0

# shellcheck disable=SC2086  # options of several words, and patterns of files, are split
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

corpus=mini       # what the data are of, as conf/report.yaml calls it: mini or full
datadir=data      # with train and valid, and dev and each test that run.sh prepared
tests="test"      # sets beside dev
confs="studies/conf/words/*.yaml" # settings of the neural LMs, a file each, called after the LM
experiment=studies/conf/words.yaml # columns of scores, and systems of them
vocabulary=min-count=2 # words that occur twice (what occurs once trains <unk>), or the most
                  # frequent, as in vocab-size=200000
order=4           # of the n-gram
train_opts=       # key=value settings over all of --confs, as in steps=100
oov_penalty=8.5   # nats that an unknown word of a hypothesis costs beyond <unk>, which stands for
                  # all of them: the log of how many words of mini's text occur once; not in
                  # perplexities
lattices="lstm-softmax lstm-bce-is lstm-bce-nce" # LMs that rescore lattices, with the n-gram
lattice_opts="--set tokens=8 cover_beam=60 --exact 20 --nj 2" # of lmtools lattice rescore
precision=auto    # of matrix products in scoring: auto, float32 or bfloat16
nj=2              # processes that train and score at a time
expdir=exp/words  # for models, scores and results
options "$@"

[[ ! $lattices || $dry_run = true || -e $datadir/dev/lattices ]] ||
  wrong "no $datadir/dev/lattices; run studies/run_lattices.sh --stop-stage 1, or give --lattices ''"
lists=$datadir/dev/nbest.jsonl
for set in $tests; do lists+=" $datadir/$set/nbest.jsonl"; done

if stage 2 "subword and binarise" $datadir/train/text $datadir/valid/text \
  : $expdir/subword $expdir/train.bin $expdir/valid.bin; then
  lmtools subword --text $datadir/train/text --type word --normaliser librispeech \
    --$vocabulary --nj $nj --out $expdir/subword
  lmtools corpus --text $datadir/train/text --subword $expdir/subword --nj $nj \
    --out $expdir/train.bin
  lmtools corpus --text $datadir/valid/text --subword $expdir/subword --out $expdir/valid.bin
fi

if stage 3 "train LMs" $datadir/train/text $expdir/subword $expdir/train.bin $expdir/valid.bin \
  $confs studies/conf/word ../../conf : $expdir/lm; then
  submit lmtools ngram --text $datadir/train/text --order $order --normaliser librispeech \
    --out $expdir/lm/ngram
  for file in $confs; do
    name=${file##*/}
    echo --conf $file --train $expdir/train.bin --valid $expdir/valid.bin \
      --out $expdir/lm/${name%.yaml} $train_opts
  done | each lmtools train
fi

if stage 4 "score" $expdir/lm $experiment conf $lists : $expdir/ppl $expdir/score; then
  lmtools ppl --experiment $experiment --lm "$expdir/lm/{lm}" --text $datadir/valid/text \
    --precision $precision --cache $expdir/cache --out "$expdir/ppl/{lm}/valid.json"
  for set in $tests; do
    lmtools ppl --experiment $experiment --lm "$expdir/lm/{lm}" --kaldi \
      --text $datadir/$set/text --precision $precision --cache $expdir/cache \
      --out "$expdir/ppl/{lm}/$set.json"
  done
  score_sets $experiment "$expdir/lm/{lm},oov_penalty=$oov_penalty" $datadir $expdir "dev $tests"
fi

if stage 5 "tune on dev and rescore" $expdir/lm $expdir/score $experiment conf $lists \
  : $expdir/tune $expdir/rescore; then
  rescore_sets $experiment $datadir $expdir dev "dev $tests"
  for lm in $lattices; do
    bash studies/local/rescore_lattices.sh $lm+ngram $datadir $expdir "dev $tests" $lattice_opts \
      --precision $precision --lm $lm=$expdir/lm/$lm,oov_penalty=$oov_penalty \
      --lm ngram=$expdir/lm/ngram,oov_penalty=$oov_penalty
    bash studies/local/rescore_lattices.sh $lm-unnormalised+ngram $datadir $expdir "dev $tests" \
      $lattice_opts --precision $precision \
      --lm $lm-unnormalised=$expdir/lm/$lm,normalise=none,oov_penalty=$oov_penalty \
      --lm ngram=$expdir/lm/ngram,oov_penalty=$oov_penalty
  done
fi

if stage 6 "report" $lists $expdir/tune $expdir/rescore $experiment conf \
  : $expdir/report/RESULTS.md $expdir/report/index.html; then
  lmtools report $expdir --experiment $experiment --nbest $lists --conf conf/report.yaml \
    --title "criteria of word LMs ($corpus)"
  python3 ../../utils/papers/paper_tables.py $expdir conf/report.yaml conf/papers.yaml
  python3 studies/local/criteria_tables.py $expdir conf/report.yaml
fi
