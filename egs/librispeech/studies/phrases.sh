#!/usr/bin/env bash
# Names and terms: the rare words of each utterance as its glossary, among 0, 100 and 1,000 others
# that nobody said, and a glossary of another domain; new hypotheses with phrases in place of near
# words. Lists and the 4-gram are run_books.sh's.
#
#   studies/phrases.sh
#   studies/phrases.sh --systems first
#
# Rare are words beyond the 5,000 most frequent of the books. Weights are tuned on dev, whose
# glossaries are made in the same way, and tested on test; those of Vosk's lists on other speakers.

# shellcheck disable=SC2086  # options of several words are split
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

books=data/books  # lists and text that run_books.sh prepared
lm=exp/books/lm/ngram4 # its 4-gram
systems="first ngram" # what phrases are added to: the first pass alone, and with the 4-gram
common=5000       # most frequent words of the text, which are not rare
nj=2              # processes that score at a time
expdir=exp/phrases # for glossaries and results
options "$@"

cases="native non-native vosk"
numbers="0 100 1000" # distractors an utterance
declare -A test=([native]=test [non-native]=test [vosk]=dev) # the set of a case to test on
declare -A opts=([native]="--fix avg=0" [non-native]="--fix avg=0" [vosk]="--folds speaker")
sets="native/dev native/test non-native/dev non-native/test vosk/dev"

if stage 1 "glossaries" $books/train.txt $books/{native,non-native,vosk} : $expdir/glossary; then
  for set in $sets; do lists="${lists-} $set=$books/$set/nbest.jsonl"; done
  python3 studies/local/phrases_glossary.py $books/train.txt $common "$numbers" $expdir/glossary $lists
fi

if stage 2 "score" $lm $books/{native,non-native,vosk} : $expdir/score; then
  mkdir -p $expdir/score
  if [[ $systems = *ngram* ]]; then
    for set in $sets; do
      lmtools score --lm $lm --nbest $books/$set/nbest.jsonl --nj $nj --out $expdir/score/$set.scores
    done
  fi
fi

if stage 3 "tune and rescore" $books/{native,non-native,vosk} $expdir/{glossary,score} \
  studies/conf/phrases/drugs.txt : $expdir/{tune,text}; then
  for case in $cases; do
    dev="--nbest $books/$case/dev/nbest.jsonl" hyp="--nbest $books/$case/${test[$case]}/nbest.jsonl"
    for system in $systems; do
      tune=$expdir/tune/$system/$case text=$expdir/text/$system/$case of_dev="" of_test=""
      if [[ $system = ngram ]]; then
        of_dev="--scores ngram=$expdir/score/$case/dev.scores"
        of_test="--scores ngram=$expdir/score/$case/${test[$case]}.scores"
      fi
      lmtools tune $dev $of_dev ${opts[$case]} --out $tune.none.json
      lmtools rescore $hyp $of_test --weights $tune.none.json --out $text.none.txt
      for number in $numbers; do
        glossary=$expdir/glossary/$number/$case
        lmtools tune $dev $of_dev ${opts[$case]} --phrases $glossary/dev.jsonl \
          --out $tune.$number.json
        lmtools rescore $hyp $of_test --phrases $glossary/${test[$case]}.jsonl \
          --weights $tune.$number.json --out $text.$number.txt
      done
      lmtools rescore $hyp $of_test --phrases studies/conf/phrases/drugs.txt --weights $tune.100.json \
        --out $text.drugs.txt
    done
    for number in $numbers; do
      lmtools rescore $hyp --phrases $expdir/glossary/$number/$case/${test[$case]}.jsonl \
        --weights default:phrases --out $expdir/text/default/$case.$number.txt
    done
    lmtools rescore $hyp --phrases studies/conf/phrases/drugs.txt --weights default:phrases \
      --out $expdir/text/default/$case.drugs.txt
  done
fi

if stage 4 "near words" $lm $books/{native,non-native,vosk} $expdir/glossary/100 \
  : $expdir/{near,tune,text}; then
  for set in $sets; do
    lists=$expdir/near/$set.jsonl
    lmtools network substitute --nbest $books/$set/nbest.jsonl \
      --phrases $expdir/glossary/100/$set.jsonl --out $lists
    if [[ $systems = *ngram* ]]; then
      lmtools score --lm $lm --nbest $lists --nj $nj --out $expdir/near/$set.scores
    fi
  done
  for case in $cases; do
    dev=$expdir/near/$case/dev hyp=$expdir/near/$case/${test[$case]}
    for system in $systems; do
      of_dev="" of_test=""
      if [[ $system = ngram ]]; then
        of_dev="--scores ngram=$dev.scores" of_test="--scores ngram=$hyp.scores"
      fi
      lmtools tune --nbest $dev.jsonl $of_dev ${opts[$case]} \
        --phrases $expdir/glossary/100/$case/dev.jsonl --out $expdir/tune/$system/$case.near.json
      lmtools rescore --nbest $hyp.jsonl $of_test \
        --phrases $expdir/glossary/100/$case/${test[$case]}.jsonl \
        --weights $expdir/tune/$system/$case.near.json --out $expdir/text/$system/$case.near.txt
    done
  done
fi

if stage 5 "evaluate" $books/{native,non-native,vosk} $expdir/{glossary,near,text} \
  : $expdir/{words,RESULTS.md}; then
  for case in $cases; do
    ref=$books/$case/${test[$case]}/nbest.jsonl
    for system in $systems default; do
      against=$expdir/text/$system/$case.none.txt
      [[ $system != default ]] || against=$ref
      for number in $numbers drugs; do
        words=$expdir/glossary/${number/drugs/0}/$case/${test[$case]}.jsonl
        lmtools evaluate --ref $ref --hyp $expdir/text/$system/$case.$number.txt --words $words \
          --against $against --out $expdir/words/$system/$case.$number.json
      done
      [[ $system = default ]] || lmtools evaluate --ref $ref \
        --hyp $expdir/text/$system/$case.near.txt --against $expdir/text/$system/$case.100.txt \
        --words $expdir/glossary/100/$case/${test[$case]}.jsonl \
        --out $expdir/words/$system/$case.near.json
    done
  done
  python3 studies/local/phrases_table.py $expdir/words $expdir/glossary $books $expdir/near > $expdir/RESULTS.md
fi
