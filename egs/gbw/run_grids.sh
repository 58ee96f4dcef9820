#!/usr/bin/env bash
# Grids of runs that differ in one thing, from what run.sh left: gates, context, training, residual,
# output, pieces, cuts and table1 of conf/grids, or a grid of one's own there.
#
# After run_wikitext2.sh: --conf conf/wikitext2 --normaliser none --corpus wikitext2
# --datadir data/wikitext2 --expdir exp/wikitext2; so with wikitext103 and gbw.

# shellcheck disable=SC2086  # grids, normaliser and train_opts are words; paths have no blanks
cd "$(dirname "$0")" && . ../../utils/recipe.sh

grids="gates context" # names of YAML files in CONF/grids and conf/grids
corpus=mini        # name of the text in the report
normaliser="none --case lower" # of text: that of the word list
conf=conf          # directory of the bases' YAML files: gcnn lstm elmo esulmo
train_opts=        # key=value settings over those of the runs, as in steps=100
nj=2               # processes that train and score at a time; 1 with a GPU
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
datadir=data       # where prepared data is
expdir=exp         # for models, perplexities and results
options "$@"

# VOCABULARY/NAME of each run; the vocabularies of pieces
[[ $recipe_help = true ]] || runs=$(command python3 local/grids.py runs $conf $grids) || exit 2
[[ $recipe_help = true ]] || pieces=$(command python3 local/grids.py vocabularies $conf $grids)

if stage 2 "settings, vocabularies and binarise" $conf conf/grids ../../conf \
  $datadir/{train,valid}/text $expdir/vocabulary/words : $expdir/{runs,grids}; then
  python3 local/grids.py write $conf $grids $expdir
  for read in ${pieces-}; do
    lmtools subword --text $datadir/train/text --type ${read%-*} --vocab-size ${read#*-} \
      --words $expdir/vocabulary/words --normaliser $normaliser --out $expdir/vocabulary/$read
    lmtools corpus --text $datadir/train/text --subword $expdir/vocabulary/$read --nj $nj \
      --out $expdir/corpus/$read/train.bin
    lmtools corpus --text $datadir/valid/text --subword $expdir/vocabulary/$read --nj $nj \
      --out $expdir/corpus/$read/valid.bin
  done
  python3 local/overlap.py $expdir/vocabulary
fi

if stage 3 "train the runs" $expdir/runs $expdir/corpus : $expdir/lm; then
  for run in ${runs-}; do
    echo --conf $expdir/runs/$run.yaml --train $expdir/corpus/${run%/*}/train.bin \
      --valid $expdir/corpus/${run%/*}/valid.bin --out $expdir/lm/${run#*/} $train_opts
  done | each lmtools train
fi

if stage 4 "perplexity" $expdir/lm $datadir/{valid,test}/text : $expdir/ppl; then
  for run in ${runs-}; do
    lmtools ppl --lm $expdir/lm/${run#*/} --text $datadir/valid/text --precision $precision \
      --nj $nj --cache $expdir/cache --out $expdir/ppl/${run#*/}/valid.json
    lmtools ppl --lm $expdir/lm/${run#*/} --text $datadir/test/text --precision $precision \
      --nj $nj --cache $expdir/cache --out $expdir/ppl/${run#*/}/test.json
    [[ ! -d $expdir/lm/${run#*/}/epoch-10 ]] || # of the setting keep_epochs
      lmtools ppl --lm $expdir/lm/${run#*/}/epoch-10 --text $datadir/test/text --nj $nj \
        --precision $precision --cache $expdir/cache --out $expdir/ppl/${run#*/}/test-epoch-10.json
  done
fi

if stage 6 "report" $expdir/{grids,ppl} conf/report.yaml \
  : $expdir/report/{RESULTS.md,index.html}; then
  lmtools report $expdir --what lm --conf conf/report.yaml --title "${PWD##*/} ($corpus)"
  python3 ../../utils/papers/paper_tables.py $expdir conf/report.yaml conf/papers.yaml
  python3 local/grid_tables.py $expdir conf/report.yaml conf/papers.yaml
fi
