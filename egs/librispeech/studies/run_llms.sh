#!/usr/bin/env bash
# Large language models on real speech: alone and beside the 4-gram of books, and with an adapter on
# text of the domain.
#
#   studies/run_books.sh --text-dir BOOKS --nbest-dir LISTS --lms "" && studies/run_llms.sh
#   studies/run_llms.sh --cases dstc2 --dstc2 DIR

# shellcheck disable=SC2086  # options of several words are split
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

llm_dir=data/llms # Hugging Face directories: gemma, smollm
cases="native non-native by-speaker" # of studies/conf/llms
datadir=data/books # lists of run_books.sh
domain=mini-real/ocean # train and dev.nbest.jsonl.xz: whose references the adapter learns
dstc2=            # for the case dstc2: dev.jsonl, test.jsonl, train.txt and valid.txt
adapter_opts="epochs=1 optim.lr=1e-3 optim.warmup=5" # key=value settings over conf/lora.yaml
precision=bfloat16 # float32 takes twice as long
nj=1              # processes at a time
expdir=exp/llms   # for adapters and, in EXPDIR/CASE, what each case comes to
options "$@"
[[ " $cases " != *" dstc2 "* || $dstc2 ]] || wrong "--dstc2 has lists and text of the case dstc2"

scores='' tuned='' tables=''
for case in $cases; do
  scores+=" $expdir/$case/score" tuned+=" $expdir/$case/rescore" tables+=" $expdir/$case/llms.md"
done

if stage 1 "texts and lists of domains" $domain $dstc2 $llm_dir/smollm : $expdir/data/non-native; then
  lmtools convert $domain/train.nbest.jsonl.xz $datadir/ocean/train/nbest.jsonl --to jsonl
  for set in train dev; do
    lmtools convert $domain/$set.nbest.jsonl.xz $expdir/data/non-native/$set.jsonl --to jsonl
    python3 ../../utils/references.py $expdir/data/non-native/$set.jsonl \
      $expdir/data/non-native/$set.text
    lmtools corpus --kaldi --text $expdir/data/non-native/$set.text --subword hf:$llm_dir/smollm \
      --out $expdir/data/non-native/$set.bin
  done
  if [[ $dstc2 ]]; then
    lmtools corpus --text $dstc2/train.txt --subword hf:$llm_dir/smollm --out $expdir/data/dstc2/train.bin
    lmtools corpus --text $dstc2/valid.txt --subword hf:$llm_dir/smollm --out $expdir/data/dstc2/dev.bin
    lmtools ngram --text $dstc2/train.txt --order 4 --normaliser librispeech --apostrophe strip \
      --out $expdir/ngram-dstc2
    lmtools convert $dstc2/dev.jsonl $datadir/dstc2/dev/nbest.jsonl --to jsonl
    lmtools convert $dstc2/test.jsonl $datadir/dstc2/test/nbest.jsonl --to jsonl
  fi
fi

if stage 2 "adapters" $llm_dir/smollm $expdir/data ../../conf/lora.yaml : $expdir/adapter; then
  for text in non-native ${dstc2:+dstc2}; do
    echo --init hf:$llm_dir/smollm --conf ../../conf/lora.yaml --train $expdir/data/$text/train.bin \
      --valid $expdir/data/$text/dev.bin --out $expdir/adapter/$text $adapter_opts
  done | each lmtools train
fi

if stage 3 "score" $llm_dir $datadir $expdir/adapter studies/conf/llms : $scores; then
  for case in $cases; do
    score_sets studies/conf/llms/$case.yaml "hf:$llm_dir/{lm}" $datadir/$case $expdir/$case dev
    [[ ! -d $datadir/$case/test ]] ||
      score_sets studies/conf/llms/$case.yaml "hf:$llm_dir/{lm}" $datadir/$case $expdir/$case test
  done
fi

if stage 4 "tune and rescore, without Whisper's score by length and with it" $datadir $scores \
  studies/conf/llms : $tuned; then
  for case in $cases; do
    sets=dev fix="--fix avg=0"
    [[ ! -d $datadir/$case/test ]] || sets="dev test"
    [[ $case != dstc2 ]] || fix='' # its lists have no scores
    rescore_sets studies/conf/llms/$case.yaml $datadir/$case $expdir/$case dev "$sets" $fix
    rm -rf $expdir/$case/avg
    mkdir -p $expdir/$case/avg
    ln -s ../score $expdir/$case/avg/score
    rescore_sets studies/conf/llms/$case.yaml $datadir/$case $expdir/$case/avg dev "$sets"
  done
fi

if stage 5 "tables" $datadir $tuned : $tables; then
  for case in $cases; do
    python3 studies/local/llms_table.py studies/conf/llms/$case.yaml $datadir/$case $expdir/$case
  done
fi
