#!/usr/bin/env bash
# Names and terms on lattices: the rare words of each utterance as its glossary, among others that
# nobody said. Weights are tuned on dev, without and with phrases, and tested on test.
#
#   studies/phrases_lattices.sh --lm exp/lm/ngram
#   studies/phrases_lattices.sh --data fisher --format plf --text fisher/text --common 1000

# shellcheck disable=SC2086  # options of several words are split
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

data=data         # DATA/{dev,test}/text and DATA/{dev,test}/lattices, a directory or one file
format=slf        # of the lattices
text=data/books/train.txt # whose words beyond the most frequent ones are rare
common=5000       # most frequent words of the text
numbers="0 100"   # distractors an utterance
lm=               # that rescores the lattices beside their own scores; empty: none
nj=2              # processes that rescore
expdir=exp/phrases-lattices # for glossaries and results
options "$@"

rescore="lmtools lattice rescore --format $format --nj $nj ${lm:+--lm ngram=$lm}"

if stage 1 "glossaries" $text $data/{dev,test}/text : $expdir/glossary; then
  python3 studies/local/phrases_glossary.py $text $common "$numbers" $expdir/glossary \
    dev=$data/dev/text test=$data/test/text
fi

if stage 2 "lists of dev, and test without phrases" $data/{dev,test}/{text,lattices} $lm \
  $expdir/glossary : $expdir/{dev,test}; then
  mkdir -p $expdir/{dev,test}
  $rescore $data/dev/lattices --weights am=1${lm:+,ngram=9},phrases=0 --ref $data/dev/text \
    --phrases $expdir/glossary/0/dev.jsonl --nbest-out $expdir/dev/1.jsonl
  lmtools tune --nbest $expdir/dev/1.jsonl --phrases $expdir/glossary/0/dev.jsonl \
    --fix phrases=0 --set lengths= --out $expdir/dev/1.json
  $rescore $data/dev/lattices --weights $expdir/dev/1.json --ref $data/dev/text \
    --phrases $expdir/glossary/0/dev.jsonl --nbest-out $expdir/dev/2.jsonl
  lmtools tune --nbest $expdir/dev/2.jsonl --phrases $expdir/glossary/0/dev.jsonl \
    --fix phrases=0 --out $expdir/dev/none.json
  $rescore $data/test/lattices --weights $expdir/dev/none.json \
    --phrases $expdir/glossary/0/test.jsonl --text-out $expdir/test/none.txt
fi

if stage 3 "phrases" $data/{dev,test}/lattices $lm $expdir/{glossary,dev} : $expdir/words; then
  for number in $numbers; do
    words=$expdir/glossary/$number/test.jsonl
    lmtools tune --nbest $expdir/dev/2.jsonl --phrases $expdir/glossary/$number/dev.jsonl \
      --out $expdir/dev/$number.json
    $rescore $data/test/lattices --weights $expdir/dev/$number.json --phrases $words \
      --text-out $expdir/test/$number.txt
    lmtools evaluate --ref $data/test/text --hyp $expdir/test/$number.txt --words $words \
      --against $expdir/test/none.txt --out $expdir/words/lattices.$number.json
  done
  # the path of each lattice with the most phrase words: what the lattices hold at all
  $rescore $data/test/lattices --weights am=1${lm:+,ngram=9},phrases=1000000 \
    --phrases $expdir/glossary/0/test.jsonl --text-out $expdir/test/most.txt
  lmtools evaluate --ref $data/test/text --hyp $expdir/test/most.txt \
    --words $expdir/glossary/0/test.jsonl --against $expdir/test/none.txt \
    --out $expdir/words/most.json
fi
