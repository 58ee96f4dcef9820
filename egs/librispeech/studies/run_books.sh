#!/usr/bin/env bash
# Real speech: LMs trained on books rescore N-best lists of human speech by real recognisers. Neural
# LMs read 1, 3 and 10 million words once, n-grams of words all. Lists are those of four cases:
# native and non-native speech by Whisper, tuned on one set and tested on another; native speech by
# Whisper and by Vosk, each speaker tested by weights tuned on the others.
#
#   studies/run_books.sh --text-dir BOOKS --nbest-dir LISTS
#
# Other lists: other names in stage 1, and a file in studies/conf/books for each case.

# shellcheck disable=SC2086  # options of several words are split
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

text_dir=         # books: FILE.txt, plain, .gz or .xz, a sentence a line
valid=2000        # sentences held out for validation, of books that no LM reads
nbest_dir=        # N-best lists with references, SET.jsonl as stage 1 names them
lms="causal tta"  # neural LMs, as conf says
vocab_size=5000   # BPE pieces of neural LMs
train_opts="epochs=1 arch.dim=192 arch.ffn=768 batch.tokens=2048" # key=value settings over conf
nj=2              # processes at a time
datadir=data/books # for prepared text and lists
expdir=exp/books  # for LMs and, in EXPDIR/CASE, what each case comes to
options "$@"
[[ $text_dir && $nbest_dir ]] || wrong "--text-dir has the books, --nbest-dir the lists; name both"

cases="native non-native by-speaker vosk"
lists="$(echo {train-clean-367,test-other-100,ocean-dev-300,ocean-test-600}.whisper-base-natural)
  test-other-100.vosk-small"
judged="$(printf "$datadir/%s/nbest.jsonl " $lists)" # whose references no LM reads
sets="native/dev native/test non-native/dev non-native/test by-speaker/dev vosk/dev"

if stage 1 "prepare text and lists" $text_dir $nbest_dir studies/conf/titles.txt : $datadir; then
  for set in $lists; do
    lmtools convert $nbest_dir/$set.jsonl $datadir/$set/nbest.jsonl --format jsonl --to jsonl \
      --normaliser librispeech --map-words studies/conf/titles.txt --dedup
    python3 ../../utils/references.py $datadir/$set/nbest.jsonl $datadir/$set/text
  done
  python3 studies/local/books_text.py $datadir $valid "1M 3M 10M" \
    "$judged" studies/conf/titles.txt $text_dir/*.txt*
  bash studies/local/join.sh $datadir native/dev train-clean-367.whisper-base-natural
  bash studies/local/join.sh $datadir native/test test-other-100.whisper-base-natural
  bash studies/local/join.sh $datadir non-native/dev ocean-dev-300.whisper-base-natural
  bash studies/local/join.sh $datadir non-native/test ocean-test-600.whisper-base-natural
  bash studies/local/join.sh $datadir by-speaker/dev native/dev native/test
  bash studies/local/join.sh $datadir vosk/dev test-other-100.vosk-small
fi

if stage 2 "subword and binarise" $datadir \
  : $expdir/subword $expdir/{valid,train-{1,3,10}M}.bin; then
  lmtools subword --text $datadir/train-10M.txt --type bpe --vocab-size $vocab_size \
    --normaliser librispeech --out $expdir/subword
  for part in valid train-1M train-3M train-10M; do
    lmtools corpus --text $datadir/$part.txt --subword $expdir/subword --out $expdir/$part.bin
  done
fi

if stage 3 "train LMs" $datadir/train.txt $expdir/{valid,train-{1,3,10}M}.bin conf ../../conf \
  : $expdir/lm; then
  submit lmtools ngram --text $datadir/train.txt --order 4 --normaliser librispeech \
    --out $expdir/lm/ngram4
  submit lmtools ngram --text $datadir/train.txt --order 5 --normaliser librispeech \
    --out $expdir/lm/ngram5
  for lm in $lms; do
    common="--conf conf/$lm.yaml --valid $expdir/valid.bin $train_opts"
    echo $common --train $expdir/train-1M.bin --out $expdir/lm/$lm-1M
    echo $common --train $expdir/train-3M.bin --out $expdir/lm/$lm-3M
    echo $common --train $expdir/train-10M.bin --out $expdir/lm/$lm-10M
  done | each lmtools train
fi

if stage 4 "score" $datadir $expdir/lm conf \
  : $expdir/{native,non-native,by-speaker,vosk}/score; then
  for set in $sets; do
    score_sets studies/conf/books.yaml "$expdir/lm/{lm}" $datadir/${set%/*} $expdir/${set%/*} ${set#*/}
  done
fi

if stage 5 "tune and rescore" $datadir conf $expdir/{native,non-native,by-speaker,vosk}/score \
  : $expdir/{native,non-native,by-speaker,vosk}/{tune,rescore}; then
  for case in $cases; do
    lmtools tune --experiment studies/conf/books/$case.yaml --nbest $datadir/$case/dev/nbest.jsonl \
      --nj $nj --scores "$expdir/$case/score/{column}/dev.scores" \
      --out "$expdir/$case/tune/{system}/weights.json"
  done
  for set in $sets; do
    case=${set%/*}
    lmtools rescore --experiment studies/conf/books/$case.yaml --nbest $datadir/$set/nbest.jsonl \
      --scores "$expdir/$case/score/{column}/${set#*/}.scores" \
      --weights "$expdir/$case/tune/{system}/weights.json" \
      --out "$expdir/$case/rescore/{system}/${set#*/}.txt"
  done
fi

if stage 6 "report" $datadir conf $expdir/lm \
  $expdir/{native,non-native,by-speaker,vosk}/{score,tune,rescore} \
  : $expdir/{native,non-native,by-speaker,vosk}/report/RESULTS.md; then
  for case in $cases; do
    lmtools report $expdir/$case --experiment studies/conf/books/$case.yaml \
      --nbest $datadir/$case/*/nbest.jsonl --conf conf/report.yaml --title $case
  done
  if [[ $lms ]]; then
    python3 studies/local/books_curve.py $expdir $datadir $expdir/curve.png \
      native/test non-native/test by-speaker/dev vosk/dev
  fi
fi
