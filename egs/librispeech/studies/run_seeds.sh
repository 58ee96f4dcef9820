#!/usr/bin/env bash
# T-TA beside uniLM and biLM, three seeds each: LMs of equal size that read the same 10 million words
# of books once rescore the lists of run_books.sh, alone and with a 4-gram of all books, and a table
# tests T-TA against both. Text, lists and pieces are those of run_books.sh:
#
#   studies/run_books.sh --text-dir BOOKS --nbest-dir LISTS --stop-stage 2 && studies/run_seeds.sh
#
# Nine trainings: two to three hours of a core; three minutes of an H200 that 15 processes shared.

# shellcheck disable=SC2086  # options of several words are split
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

lms="causal-1 causal-2 causal-3 masked-1 masked-2 masked-3 tta-1 tta-2 tta-3" # conf/LM.yaml and
                  # seed
size=10M          # of the text that the LMs read: EXP/train-SIZE.bin of run_books.sh
train_opts="epochs=1 arch.dim=192 arch.ffn=768 batch.tokens=2048" # key=value settings over conf
precision=float32 # of matrix products in scoring: auto, float32 or bfloat16
nj=2              # processes at a time
datadir=data/books # of run_books.sh: text and lists
books=exp/books   # of run_books.sh: pieces and binarised text
expdir=exp/seeds  # for LMs and, in EXPDIR/CASE, what each case comes to
options "$@"

sets="native/dev native/test non-native/dev non-native/test by-speaker/dev vosk/dev"

if stage 3 "train LMs" $datadir/train.txt $books/{valid,train-$size}.bin conf ../../conf \
  : $expdir/lm; then
  submit lmtools ngram --text $datadir/train.txt --order 4 --normaliser librispeech \
    --out $expdir/lm/ngram4
  for lm in $lms; do
    echo --conf conf/${lm%-*}.yaml --train $books/train-$size.bin --valid $books/valid.bin \
      --out $expdir/lm/$lm $train_opts seed=${lm#*-}
  done | each lmtools train
fi

if stage 4 "score" studies/conf/seeds.yaml $datadir $expdir/lm \
  : $expdir/{native,non-native,by-speaker,vosk}/score; then
  for set in $sets; do
    score_sets studies/conf/seeds.yaml "$expdir/lm/{lm}" $datadir/${set%/*} $expdir/${set%/*} ${set#*/}
  done
fi

if stage 5 "tune and rescore" studies/conf/seeds.yaml $datadir \
  $expdir/{native,non-native,by-speaker,vosk}/score \
  : $expdir/{native,non-native,by-speaker,vosk}/{tune,rescore}; then
  for case in native non-native; do
    rescore_sets studies/conf/seeds.yaml $datadir/$case $expdir/$case dev "dev test" --fix avg=0
  done
  rescore_sets studies/conf/seeds.yaml $datadir/by-speaker $expdir/by-speaker dev dev \
    --fix avg=0 --folds speaker
  rescore_sets studies/conf/seeds.yaml $datadir/vosk $expdir/vosk dev dev --folds speaker
fi

if stage 6 "table" $datadir $expdir/{native,non-native,by-speaker,vosk}/rescore \
  : $expdir/seeds.md; then
  python3 studies/local/seeds_table.py $datadir $expdir $expdir/seeds.md \
    native/test by-speaker/dev non-native/test vosk/dev
fi
