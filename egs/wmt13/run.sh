#!/usr/bin/env bash
# WMT13: train language models on English text, rescore N-best lists of translations into English
# with them, and compare.
#
# The mini corpus needs no network: sentences of manuals, translated by a small model that was
# trained on others. Both pairs of languages share the English text and its LMs (exp/english): after
# `./run.sh` the second takes `./run.sh --pair fr-en`, which trains nothing again. run_full.sh makes
# data of newstest2012 and newstest2013, run_nmt.sh lists by a translator, for this script to go on
# with; run_translators.sh and run_paper.sh add systems to what it leaves.
# shellcheck disable=SC2086  # lms and train_opts are words; paths have no blanks

cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=mini        # directory with train.txt valid.txt PAIR.dev.nbest.jsonl PAIR.test.nbest.jsonl,
                   # plain, .gz or .xz; your own in this form will do as well
pair=de-en         # name of the lists: which languages they are matters nowhere
depth=20           # hypotheses a sentence
normaliser=cased   # of text and hypotheses: cased, none or librispeech (lower case, no punctuation)
vocab_size=4000    # pieces that LMs predict
conf=conf          # directory with a YAML file for each neural LM
lms="causal masked tta" # neural LMs to train
train_opts=        # key=value settings over the YAML files, as in steps=100
experiment=conf/experiment.yaml # what is scored, combined and tuned
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
nj=3               # processes that train, score and tune at a time; 1 with a GPU
datadir=data       # for prepared data
expdir=exp         # for models, scores and results
options "$@"
trained=$expdir/english/lm/ngram/config.yaml
for lm in $lms; do trained+=" $expdir/english/lm/$lm/model.safetensors"; done

if stage 0 "get data" $corpus : $datadir/local/{train,valid}.txt \
  $datadir/local/$pair.{dev,test}.nbest.jsonl; then
  python3 ../../utils/unpack.py $corpus $datadir/local {train,valid}.txt \
    $pair.{dev,test}.nbest.jsonl
fi

if stage 1 "prepare text and lists" $datadir/local/{train,valid}.txt \
  $datadir/local/$pair.{dev,test}.nbest.jsonl \
  : $datadir/english/{train,valid}.txt $datadir/$pair/{dev,test}/{nbest.jsonl,text,source}; then
  mkdir -p $datadir/english
  cp $datadir/local/{train,valid}.txt $datadir/english
  for set in dev test; do
    lmtools convert $datadir/local/$pair.$set.nbest.jsonl $datadir/$pair/$set/nbest.jsonl \
      --format jsonl --to jsonl --depth $depth
    python3 ../../utils/references.py $datadir/$pair/$set/{nbest.jsonl,text}
    python3 local/prepare.py sources $datadir/$pair/$set/{nbest.jsonl,source}
  done
fi

if stage 2 "subword and binarise" $datadir/english/{train,valid}.txt \
  : $expdir/english/subword $expdir/english/{train,valid}.bin; then
  lmtools subword --text $datadir/english/train.txt --type bpe --vocab-size $vocab_size \
    --normaliser $normaliser --out $expdir/english/subword
  for set in train valid; do
    lmtools corpus --text $datadir/english/$set.txt --subword $expdir/english/subword \
      --out $expdir/english/$set.bin
  done
fi

if stage 3 "train LMs" $datadir/english/train.txt $expdir/english/subword \
  $expdir/english/{train,valid}.bin $conf ../../conf : $trained; then
  submit lmtools ngram --text $datadir/english/train.txt --order 5 \
    --subword $expdir/english/subword --out $expdir/english/lm/ngram
  for lm in $lms; do
    echo --conf $conf/$lm.yaml --train $expdir/english/train.bin \
      --valid $expdir/english/valid.bin --out $expdir/english/lm/$lm $train_opts
  done | each lmtools train
fi

if stage 4 "score" $trained $experiment $datadir/english/valid.txt \
  $datadir/$pair/{dev,test}/{nbest.jsonl,text} : $expdir/$pair/{score,ppl}; then
  cache=$expdir/english/cache score_sets $experiment "$expdir/english/lm/{lm}" $datadir/$pair $expdir/$pair "dev test"
  lmtools ppl --experiment $experiment --lm "$expdir/english/lm/{lm}" --precision $precision \
    --cache $expdir/english/cache --text $datadir/english/valid.txt \
    --out "$expdir/$pair/ppl/{lm}/valid.json"
  lmtools ppl --experiment $experiment --lm "$expdir/english/lm/{lm}" --precision $precision \
    --cache $expdir/english/cache --kaldi --text $datadir/$pair/test/text \
    --out "$expdir/$pair/ppl/{lm}/test.json"
fi

if stage 5 "tune on dev and rescore" $experiment $datadir/$pair/{dev,test}/nbest.jsonl \
  $expdir/$pair/score : $expdir/$pair/{tune,rescore}; then
  rescore_sets $experiment $datadir/$pair $expdir/$pair dev "dev test"
fi

if stage 6 "report" $experiment conf/report.yaml $expdir/$pair/{tune,rescore,ppl} $trained \
  $datadir/$pair/{dev,test}/{nbest.jsonl,text} \
  : $expdir/$pair/report/{RESULTS.md,index.html,metrics.md}; then
  ln -sfnrt $expdir/$pair $expdir/english/lm $expdir/english/train.bin $expdir/stages
  lmtools report $expdir/$pair --experiment $experiment --conf conf/report.yaml \
    --nbest $datadir/$pair/{dev,test}/nbest.jsonl --title "${PWD##*/} ($corpus, $pair)"
  python3 ../../utils/papers/paper_tables.py $expdir/$pair conf/report.yaml
  python3 local/metrics.py $experiment $datadir/$pair/test/text $expdir/$pair/rescore \
    $expdir/$pair/report/metrics.md
fi
