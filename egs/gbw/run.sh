#!/usr/bin/env bash
# Five language models of one text: train n-gram, LSTM, gated convolutional, two-way (ELMo) and
# subword ELMo language models, compare their perplexities, and rescore N-best lists with each.
#
# Needs no network: the text is the Bible of egs/librispeech/mini, the lists are Whisper's of
# LibriSpeech (egs/librispeech/mini-real); neither has punctuation, and one normaliser gives both
# lower case. --corpus DIR takes a text of one's own, --nbest-dir DIR other lists. Published texts:
# run_gbw.sh, run_wikitext103.sh, run_wikitext2.sh. From what this script leaves go on run_grids.sh,
# run_speed.sh and run_tasks.sh.

# shellcheck disable=SC2086  # normaliser and train_opts are words; paths have no blanks
cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=../librispeech/mini # directory of the text: train.txt valid.txt and, if there is one,
                   # test.txt (else the last 80th of train.txt tests), plain, .gz or .xz
nbest_dir=../librispeech/mini-real # directory of N-best lists with references: dev.nbest.jsonl, on
                   # which weights are tuned, and test.nbest.jsonl, plain, .gz or .xz
depth=20           # hypotheses of a list that are rescored
normaliser="none --case lower" # of text and lists, as lmtools subword knows it: "none --case lower"
                   # for text without punctuation, else librispeech (lower case, no punctuation)
min_count=3        # words seen less often are <unk>
conf=conf          # directory of the LMs' YAML files: lstm gcnn elmo esulmo
train_opts=        # key=value settings over the YAML files, as in steps=100
nj=2               # processes that train and score at a time; 1 with a GPU
shard_size=        # bytes of text of a shard of the training corpus, as in 500M; training holds one
                   # shard, several processes write them; empty: one file
memory=2G          # that sorting n-grams may take; more is on the disk of expdir
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
datadir=data       # for prepared data
expdir=exp         # for models, scores and results
options "$@"

if stage 0 "get data" $corpus $nbest_dir : $datadir/local/{text,lists}; then
  python3 ../../utils/unpack.py $corpus $datadir/local/text train.txt valid.txt "test.txt?"
  python3 ../../utils/unpack.py $nbest_dir $datadir/local/lists {dev,test}.nbest.jsonl
fi

if stage 1 "prepare text and lists" $datadir/local/{text,lists} \
  : $datadir/{train,valid,test}/text $datadir/asr-{dev,test}/{text,nbest.jsonl}; then
  python3 local/prepare.py text $datadir/local/text $datadir
  for set in dev test; do
    python3 ../../utils/references.py $datadir/local/lists/$set.nbest.jsonl $datadir/asr-$set/text
    lmtools convert $datadir/local/lists/$set.nbest.jsonl $datadir/asr-$set/nbest.jsonl \
      --format jsonl --to jsonl --ref $datadir/asr-$set/text --depth $depth \
      --normaliser $normaliser
  done
fi

if stage 2 "vocabularies and binarise" $datadir/{train,valid}/text \
  : $expdir/{vocabulary,corpus}/{words,char,bpe-500}; then
  lmtools subword --text $datadir/train/text --type word --min-count $min_count \
    --normaliser $normaliser --nj $nj --out $expdir/vocabulary/words
  lmtools subword --text $datadir/train/text --type char --words $expdir/vocabulary/words \
    --normaliser $normaliser --out $expdir/vocabulary/char
  lmtools subword --text $datadir/train/text --type bpe --vocab-size 500 \
    --words $expdir/vocabulary/words --normaliser $normaliser --out $expdir/vocabulary/bpe-500
  for read in words char bpe-500; do # what an LM reads; all predict words
    lmtools corpus --text $datadir/train/text --subword $expdir/vocabulary/$read \
      ${shard_size:+--shard-size $shard_size} --nj $nj --out $expdir/corpus/$read/train.bin
    lmtools corpus --text $datadir/valid/text --subword $expdir/vocabulary/$read \
      --nj $nj --out $expdir/corpus/$read/valid.bin
  done
fi

if stage 3 "train LMs" $datadir/train/text $expdir/vocabulary/words \
  $expdir/corpus/{words,char,bpe-500}/{train,valid}.bin $conf ../../conf \
  : $expdir/lm/kn5/config.yaml $expdir/lm/{lstm,gcnn,elmo-char,esulmo-bpe-500}/model.safetensors
then
  submit lmtools ngram --text $datadir/train/text --order 5 --unk --memory $memory \
    --subword $expdir/vocabulary/words --out $expdir/lm/kn5
  for lm in lstm gcnn; do
    echo --conf $conf/$lm.yaml --train $expdir/corpus/words/train.bin \
      --valid $expdir/corpus/words/valid.bin --out $expdir/lm/$lm $train_opts
  done | each lmtools train
  for lm in elmo-char esulmo-bpe-500; do # settings, and what spells words
    echo --conf $conf/${lm%%-*}.yaml --train $expdir/corpus/${lm#*-}/train.bin \
      --valid $expdir/corpus/${lm#*-}/valid.bin --out $expdir/lm/$lm $train_opts
  done | each lmtools train
fi

if stage 4 "perplexity, scores of lists" conf/experiment.yaml $expdir/lm/kn5/config.yaml \
  $expdir/lm/{lstm,gcnn,elmo-char,esulmo-bpe-500}/model.safetensors \
  $datadir/{valid,test,asr-dev,asr-test}/text $datadir/asr-{dev,test}/nbest.jsonl \
  : $expdir/ppl/{kn5,lstm,gcnn,elmo-char,esulmo-bpe-500}/{valid,test,asr-dev,asr-test}.json \
  $expdir/score/{kn5,lstm,gcnn,elmo-char,esulmo-bpe-500}/asr-{dev,test}.scores; then
  for set in valid test; do
    lmtools ppl --experiment conf/experiment.yaml --lm "$expdir/lm/{lm}" --precision $precision \
      --nj $nj --cache $expdir/cache --text $datadir/$set/text --out "$expdir/ppl/{lm}/$set.json"
  done
  for set in asr-dev asr-test; do
    lmtools ppl --experiment conf/experiment.yaml --lm "$expdir/lm/{lm}" --precision $precision \
      --nj $nj --cache $expdir/cache --kaldi --text $datadir/$set/text \
      --out "$expdir/ppl/{lm}/$set.json"
  done
  score_sets conf/experiment.yaml "$expdir/lm/{lm}" $datadir $expdir "asr-dev asr-test"
fi

if stage 5 "tune on dev and rescore test" conf/experiment.yaml $datadir/asr-{dev,test}/nbest.jsonl \
  $expdir/score/{kn5,lstm,gcnn,elmo-char,esulmo-bpe-500}/asr-{dev,test}.scores \
  : $expdir/{tune,rescore}; then
  rescore_sets conf/experiment.yaml $datadir $expdir asr-dev "asr-dev asr-test"
fi

if stage 6 "report" conf/{experiment,report}.yaml $expdir/{tune,rescore} \
  $datadir/asr-{dev,test}/nbest.jsonl \
  $expdir/ppl/{kn5,lstm,gcnn,elmo-char,esulmo-bpe-500}/{valid,test,asr-dev,asr-test}.json \
  : $expdir/report/{RESULTS.md,index.html}; then
  lmtools report $expdir --what lm --experiment conf/experiment.yaml --conf conf/report.yaml \
    --nbest $datadir/asr-{dev,test}/nbest.jsonl --title "${PWD##*/} (${corpus##*/})"
  python3 ../../utils/papers/paper_tables.py $expdir conf/report.yaml
  [[ ! -f conf/papers.yaml ]] || python3 local/grid_tables.py $expdir conf/report.yaml conf/papers.yaml
fi
