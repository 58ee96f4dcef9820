#!/usr/bin/env bash
# WikiText-2 as published: the five language models of run.sh at sizes that 2 cores train in about
# an hour, compared by perplexity.
#
# The corpus (4.5 MB) is fetched and checked; its text has case, punctuation and <unk>, so that
# N-best lists of speech do not fit it. run_grids.sh --conf conf/wikitext2 goes on from here.

# shellcheck disable=SC2086  # train_opts and url are words or nothing; paths have no blanks
cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=wikitext2   # name of the text in the report
line=paragraph     # a line of text: paragraph, or article for all under its title
url=               # where to fetch the corpus; empty: its public address
conf=conf/wikitext2 # directory of the LMs' YAML files: lstm gcnn elmo esulmo
train_opts=        # key=value settings over the YAML files, as in steps=100
nj=2               # processes that train and score at a time; 1 with a GPU
memory=2G          # that sorting n-grams may take; more is on the disk of expdir
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
datadir=data/wikitext2 # for prepared data
expdir=exp/wikitext2 # for models, perplexities and results
options "$@"

if stage 0 "get data" local/wikitext2.sha256 : $datadir/local; then
  bash local/get_wikitext2.sh $datadir/local $url
fi

if stage 1 "prepare text" $datadir/local : $datadir/{train,valid,test}/text; then
  python3 local/prepare.py wikitext2 $datadir/local $datadir $line
fi

if stage 2 "vocabularies and binarise" $datadir/{train,valid}/text \
  : $expdir/{vocabulary,corpus}/{words,char,bpe-500}; then
  lmtools subword --text $datadir/train/text --type word --min-count 1 --nj $nj \
    --out $expdir/vocabulary/words
  lmtools subword --text $datadir/train/text --type char --words $expdir/vocabulary/words \
    --out $expdir/vocabulary/char
  lmtools subword --text $datadir/train/text --type bpe --vocab-size 500 \
    --words $expdir/vocabulary/words --out $expdir/vocabulary/bpe-500
  for read in words char bpe-500; do # what an LM reads; all predict words
    lmtools corpus --text $datadir/train/text --subword $expdir/vocabulary/$read --nj $nj \
      --out $expdir/corpus/$read/train.bin
    lmtools corpus --text $datadir/valid/text --subword $expdir/vocabulary/$read --nj $nj \
      --out $expdir/corpus/$read/valid.bin
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

if stage 4 "perplexity" $expdir/lm/kn5/config.yaml $datadir/{valid,test}/text \
  $expdir/lm/{lstm,gcnn,elmo-char,esulmo-bpe-500}/model.safetensors \
  : $expdir/ppl/{kn5,lstm,gcnn,elmo-char,esulmo-bpe-500}/{valid,test}.json; then
  for lm in kn5 lstm gcnn elmo-char esulmo-bpe-500; do
    lmtools ppl --lm $expdir/lm/$lm --text $datadir/valid/text --precision $precision --nj $nj \
      --cache $expdir/cache --out $expdir/ppl/$lm/valid.json
    lmtools ppl --lm $expdir/lm/$lm --text $datadir/test/text --precision $precision --nj $nj \
      --cache $expdir/cache --out $expdir/ppl/$lm/test.json
  done
fi

if stage 6 "report" conf/report.yaml \
  $expdir/ppl/{kn5,lstm,gcnn,elmo-char,esulmo-bpe-500}/{valid,test}.json \
  : $expdir/report/{RESULTS.md,index.html}; then
  lmtools report $expdir --what lm --conf conf/report.yaml --title "${PWD##*/} ($corpus)"
  python3 ../../utils/papers/paper_tables.py $expdir conf/report.yaml conf/papers.yaml
  python3 local/grid_tables.py $expdir conf/report.yaml conf/papers.yaml
fi
