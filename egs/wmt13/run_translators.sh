#!/usr/bin/env bash
# WMT13, noisy channel: train translators of bilingual text, direct, p(hypothesis | source), and
# channel, p(source | hypothesis), score the lists of run.sh with them too, tune, rescore, report.
#
# Starts from what `./run.sh --pair PAIR` left with the same --datadir and --expdir. The channel
# alone: --translators channel --experiment conf/channel.yaml. Translators that are there already:
# --translators "" --stage 4, and under `lms` of a YAML file of yours where they are.
# shellcheck disable=SC2086  # translators and train_opts are words; paths have no blanks

cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=mini        # directory with PAIR.train.tsv and PAIR.valid.tsv, a foreign sentence, a tab and
                   # an English one a line, plain, .gz or .xz
pair=de-en         # whose lists are scored
normaliser=cased   # of both sides: cased, none or librispeech (lower case, no punctuation)
vocab_size=4000    # pieces of both sides, one vocabulary
conf=conf          # directory with seq2seq.yaml, what a translator is; conf/printed: the paper's
translators="direct channel" # which to train
train_opts=        # key=value settings over seq2seq.yaml, as in steps=100
experiment=conf/translators.yaml # what is scored, combined and tuned
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
nj=3               # processes that train, score and tune at a time; 1 with a GPU
datadir=data       # of run.sh
expdir=exp         # of run.sh; models, scores and results go to EXPDIR/PAIR-translators
options "$@"
home=$expdir/$pair-translators
trained=
for name in $translators; do trained+=" $home/models/$name/model.safetensors"; done

if stage 0 "get data" $corpus : $datadir/local/$pair.{train,valid}.tsv; then
  python3 ../../utils/unpack.py $corpus $datadir/local $pair.{train,valid}.tsv
fi

if stage 1 "prepare bilingual text" $datadir/local/$pair.{train,valid}.tsv \
  $datadir/english/train.txt \
  : $datadir/$pair/bilingual/{train,valid}.{foreign,english} $home/overlap.md; then
  for set in train valid; do
    python3 local/prepare.py pairs $datadir/local/$pair.$set.tsv \
      $datadir/$pair/bilingual/$set.{foreign,english}
  done
  python3 local/overlap.py $datadir/english/train.txt $datadir/$pair/bilingual/train.english \
    $home/overlap.md
fi

if stage 2 "subword and binarise" $datadir/$pair/bilingual/{train,valid}.{foreign,english} \
  : $home/subword $home/{train,valid}.{direct,channel}.bin; then
  lmtools subword --text $datadir/$pair/bilingual/train.{foreign,english} --type bpe \
    --vocab-size $vocab_size --normaliser $normaliser --out $home/subword
  for set in train valid; do
    lmtools corpus --source $datadir/$pair/bilingual/$set.foreign \
      --text $datadir/$pair/bilingual/$set.english --subword $home/subword \
      --out $home/$set.direct.bin
    lmtools corpus --source $datadir/$pair/bilingual/$set.english \
      --text $datadir/$pair/bilingual/$set.foreign --subword $home/subword \
      --out $home/$set.channel.bin
  done
fi

if stage 3 "train translators" $home/{train,valid}.{direct,channel}.bin $conf ../../conf \
  : $trained; then
  for name in $translators; do
    echo --conf $conf/seq2seq.yaml --train $home/train.$name.bin --valid $home/valid.$name.bin \
      --out $home/models/$name $train_opts
  done | each lmtools train
fi

if stage 4 "score" $trained $expdir/english/lm/ngram $experiment \
  $datadir/english/valid.txt $datadir/$pair/{dev,test}/{nbest.jsonl,text,source} \
  : $home/{score,ppl}; then
  mkdir -p $home/models
  ln -sfnrt $home/models $expdir/english/lm/{ngram,causal,masked,tta}
  for set in dev test; do
    cache=$expdir/english/cache score_sets $experiment "$home/models/{lm}" $datadir/$pair $home $set \
      --source $datadir/$pair/$set/source
  done
  lmtools ppl --experiment $experiment --lm "$home/models/{lm}" --precision $precision \
    --cache $expdir/english/cache --text $datadir/english/valid.txt \
    --out "$home/ppl/{lm}/valid.json"
  lmtools ppl --experiment $experiment --lm "$home/models/{lm}" --precision $precision \
    --cache $expdir/english/cache --kaldi --text $datadir/$pair/test/text \
    --out "$home/ppl/{lm}/test.json"
fi

if stage 5 "tune on dev and rescore" $experiment $datadir/$pair/{dev,test}/nbest.jsonl $home/score \
  : $home/{tune,rescore}; then
  rescore_sets $experiment $datadir/$pair $home dev "dev test"
fi

if stage 6 "report" $experiment conf/report.yaml $home/{tune,rescore,ppl} \
  $datadir/$pair/{dev,test}/{nbest.jsonl,text} \
  : $home/report/{RESULTS.md,index.html,metrics.md}; then
  ln -sfnrt $home $expdir/english/lm $expdir/english/train.bin $expdir/stages
  lmtools report $home --experiment $experiment --conf conf/report.yaml \
    --nbest $datadir/$pair/{dev,test}/nbest.jsonl --title "${PWD##*/} ($corpus, $pair)"
  python3 ../../utils/papers/paper_tables.py $home conf/report.yaml conf/papers.yaml
  python3 local/metrics.py $experiment $datadir/$pair/test/text $home/rescore \
    $home/report/metrics.md
fi
