#!/usr/bin/env bash
# WikiText-103 as published: the sizes of the GCNN paper's Table 3 (Dauphin et al. 2017) and a
# Kneser-Ney 5-gram, compared by perplexity.
#
# The corpus (190 MB) is fetched and checked. The neural models want GPUs: --processes 8 --nj 1.

# shellcheck disable=SC2086  # train_opts and url are words or nothing; paths have no blanks
cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=wikitext103 # name of the text in the report
line=paragraph     # a line of text: paragraph, or article for all under its title
url=               # where to fetch the corpus; empty: its public address
conf=../../conf    # directory of the LMs' YAML files: lstm-1024 gcnn-8 gcnn-14
train_opts=        # key=value settings over the YAML files, as in steps=100
nj=2               # processes that train and score at a time; 1 with a GPU
shard_size=        # bytes of text of a shard of the training corpus, as in 500M; training holds one
                   # shard, several processes write them; empty: one file
memory=2G          # that sorting n-grams may take; more is on the disk of expdir
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
datadir=data/wikitext103 # for prepared data
expdir=exp/wikitext103 # for models, perplexities and results
options "$@"

if stage 0 "get data" local/wikitext103.sha256 : $datadir/local; then
  bash local/get_wikitext103.sh $datadir/local $url
fi

if stage 1 "prepare text" $datadir/local : $datadir/{train,valid,test}/text; then
  python3 local/prepare.py wikitext103 $datadir/local $datadir $line
fi

if stage 2 "word list and binarise" $datadir/{train,valid}/text \
  : $expdir/vocabulary/words $expdir/corpus/words/{train,valid}.bin; then
  lmtools subword --text $datadir/train/text --type word --min-count 1 --nj $nj \
    --out $expdir/vocabulary/words
  lmtools corpus --text $datadir/train/text --subword $expdir/vocabulary/words \
    ${shard_size:+--shard-size $shard_size} --nj $nj --out $expdir/corpus/words/train.bin
  lmtools corpus --text $datadir/valid/text --subword $expdir/vocabulary/words --nj $nj \
    --out $expdir/corpus/words/valid.bin
fi

if stage 3 "train LMs" $datadir/train/text $expdir/vocabulary/words \
  $expdir/corpus/words/{train,valid}.bin $conf \
  : $expdir/lm/kn5/config.yaml $expdir/lm/{lstm-1024,gcnn-8,gcnn-14}/model.safetensors; then
  submit lmtools ngram --text $datadir/train/text --order 5 --unk --memory $memory \
    --subword $expdir/vocabulary/words --out $expdir/lm/kn5
  for lm in lstm-1024 gcnn-8 gcnn-14; do
    echo --conf $conf/$lm.yaml --train $expdir/corpus/words/train.bin \
      --valid $expdir/corpus/words/valid.bin --out $expdir/lm/$lm $train_opts
  done | each lmtools train
fi

if stage 4 "perplexity" $expdir/lm/kn5/config.yaml $datadir/{valid,test}/text \
  $expdir/lm/{lstm-1024,gcnn-8,gcnn-14}/model.safetensors \
  : $expdir/ppl/{kn5,lstm-1024,gcnn-8,gcnn-14}/{valid,test}.json; then
  for lm in kn5 lstm-1024 gcnn-8 gcnn-14; do
    lmtools ppl --lm $expdir/lm/$lm --text $datadir/valid/text --precision $precision --nj $nj \
      --cache $expdir/cache --out $expdir/ppl/$lm/valid.json
    lmtools ppl --lm $expdir/lm/$lm --text $datadir/test/text --precision $precision --nj $nj \
      --cache $expdir/cache --out $expdir/ppl/$lm/test.json
  done
fi

if stage 6 "report" conf/report.yaml $expdir/ppl/{kn5,lstm-1024,gcnn-8,gcnn-14}/{valid,test}.json \
  : $expdir/report/{RESULTS.md,index.html}; then
  lmtools report $expdir --what lm --conf conf/report.yaml --title "${PWD##*/} ($corpus)"
  python3 ../../utils/papers/paper_tables.py $expdir conf/report.yaml conf/papers.yaml
  python3 local/grid_tables.py $expdir conf/report.yaml conf/papers.yaml
fi
