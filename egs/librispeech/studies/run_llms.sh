#!/usr/bin/env bash
# Large language models on real speech: alone and beside the 4-gram of books.
#
#   studies/run_books.sh --text-dir BOOKS --nbest-dir LISTS --lms "" && studies/run_llms.sh

# shellcheck disable=SC2086  # options of several words are split
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

llm_dir=data/llms # Hugging Face directories: gemma, smollm
cases="native non-native by-speaker" # of studies/conf/llms
datadir=data/books # lists of run_books.sh
precision=bfloat16 # float32 takes twice as long
nj=1              # processes at a time
expdir=exp/llms   # in EXPDIR/CASE what each case comes to
options "$@"

scores='' tuned='' tables=''
for case in $cases; do
  scores+=" $expdir/$case/score" tuned+=" $expdir/$case/rescore" tables+=" $expdir/$case/llms.md"
done

if stage 1 "score" $llm_dir $datadir studies/conf/llms : $scores; then
  for case in $cases; do
    score_sets studies/conf/llms/$case.yaml "hf:$llm_dir/{lm}" $datadir/$case $expdir/$case dev
    [[ ! -d $datadir/$case/test ]] ||
      score_sets studies/conf/llms/$case.yaml "hf:$llm_dir/{lm}" $datadir/$case $expdir/$case test
  done
fi

if stage 2 "tune and rescore, without Whisper's score by length and with it" $datadir $scores \
  studies/conf/llms : $tuned; then
  for case in $cases; do
    sets=dev
    [[ ! -d $datadir/$case/test ]] || sets="dev test"
    rescore_sets studies/conf/llms/$case.yaml $datadir/$case $expdir/$case dev "$sets" --fix avg=0
    rm -rf $expdir/$case/avg
    mkdir -p $expdir/$case/avg
    ln -s ../score $expdir/$case/avg/score
    rescore_sets studies/conf/llms/$case.yaml $datadir/$case $expdir/$case/avg dev "$sets"
  done
fi

if stage 3 "tables" $datadir $tuned : $tables; then
  for case in $cases; do
    python3 studies/local/llms_table.py studies/conf/llms/$case.yaml $datadir/$case $expdir/$case
  done
fi
