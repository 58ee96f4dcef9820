#!/usr/bin/env bash
# One Billion Word as published (Chelba et al. 2013): the sizes of the GCNN paper's Table 2 (Dauphin
# et al. 2017) and of Subword ELMo's Table 1 (Li et al. 2019) and a Kneser-Ney 5-gram, compared by
# perplexity.
#
# The corpus (1.8 GB) is fetched and checked. The neural models want GPUs: --processes 8 --nj 1, or
# --processes 8 --nnodes 2 --nj 1 --cmd utils/slurm.sh for two machines of a cluster.

# shellcheck disable=SC2086  # train_opts and url are words or nothing; paths have no blanks
cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=gbw         # name of the text in the report
url=               # where to fetch the corpus; empty: its public address
conf=../../conf    # directory of the LMs' YAML files: lstm-2048 lstm-2048-2 gcnn-13 gcnn-14b elmo
                   # esulmo
train_opts=        # key=value settings over the YAML files, as in steps=100
nj=2               # processes that train and score at a time; 1 with a GPU
shard_size=        # bytes of text of a shard of the training corpus, as in 500M; training holds one
                   # shard, several processes write them; empty: one file
memory=2G          # that sorting n-grams may take; more is on the disk of expdir
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
datadir=data/gbw # for prepared data
expdir=exp/gbw # for models, perplexities and results
options "$@"

if stage 0 "get data" local/gbw.sha256 : $datadir/local; then
  bash local/get_gbw.sh $datadir/local $url
fi

if stage 1 "prepare text" $datadir/local : $datadir/{train,valid,test}/text; then
  python3 local/prepare.py gbw $datadir/local $datadir
fi

if stage 2 "vocabularies and binarise" $datadir/{train,valid}/text \
  : $expdir/{vocabulary,corpus}/{words,char,bpe-500}; then
  lmtools subword --text $datadir/train/text --type word --min-count 3 --nj $nj \
    --out $expdir/vocabulary/words
  lmtools subword --text $datadir/train/text --type char --words $expdir/vocabulary/words \
    --out $expdir/vocabulary/char
  lmtools subword --text $datadir/train/text --type bpe --vocab-size 500 \
    --words $expdir/vocabulary/words --out $expdir/vocabulary/bpe-500
  for read in words char bpe-500; do # what an LM reads; all predict words
    lmtools corpus --text $datadir/train/text --subword $expdir/vocabulary/$read \
      ${shard_size:+--shard-size $shard_size} --nj $nj --out $expdir/corpus/$read/train.bin
    lmtools corpus --text $datadir/valid/text --subword $expdir/vocabulary/$read --nj $nj \
      --out $expdir/corpus/$read/valid.bin
  done
fi

if stage 3 "train LMs" $datadir/train/text $expdir/vocabulary/words \
  $expdir/corpus/{words,char,bpe-500}/{train,valid}.bin $conf ../../conf \
  : $expdir/lm/kn5/config.yaml \
  $expdir/lm/{lstm-2048{,-2},gcnn-13,gcnn-14b,elmo-char,esulmo-bpe-500}/model.safetensors
then
  submit lmtools ngram --text $datadir/train/text --order 5 --unk --memory $memory \
    --subword $expdir/vocabulary/words --out $expdir/lm/kn5
  for lm in lstm-2048 lstm-2048-2 gcnn-13 gcnn-14b; do
    echo --conf $conf/$lm.yaml --train $expdir/corpus/words/train.bin \
      --valid $expdir/corpus/words/valid.bin --out $expdir/lm/$lm $train_opts
  done | each lmtools train
  for lm in elmo-char esulmo-bpe-500; do # settings, and what spells words
    echo --conf $conf/${lm%%-*}.yaml --train $expdir/corpus/${lm#*-}/train.bin \
      --valid $expdir/corpus/${lm#*-}/valid.bin --out $expdir/lm/$lm $train_opts
  done | each lmtools train
fi

if stage 4 "perplexity" $expdir/lm/kn5/config.yaml $datadir/{valid,test}/text \
  $expdir/lm/{lstm-2048{,-2},gcnn-13,gcnn-14b,elmo-char,esulmo-bpe-500}/model.safetensors \
  : $expdir/ppl/{kn5,lstm-2048{,-2},gcnn-13,gcnn-14b,elmo-char,esulmo-bpe-500}/{valid,test}.json
then
  for lm in kn5 lstm-2048 lstm-2048-2 gcnn-13 gcnn-14b elmo-char esulmo-bpe-500; do
    lmtools ppl --lm $expdir/lm/$lm --text $datadir/valid/text --precision $precision --nj $nj \
      --cache $expdir/cache --out $expdir/ppl/$lm/valid.json
    lmtools ppl --lm $expdir/lm/$lm --text $datadir/test/text --precision $precision --nj $nj \
      --cache $expdir/cache --out $expdir/ppl/$lm/test.json
  done
fi

if stage 6 "report" conf/report.yaml \
  $expdir/ppl/{kn5,lstm-2048{,-2},gcnn-13,gcnn-14b,elmo-char,esulmo-bpe-500}/{valid,test}.json \
  : $expdir/report/{RESULTS.md,index.html}; then
  lmtools report $expdir --what lm --conf conf/report.yaml --title "${PWD##*/} ($corpus)"
  python3 ../../utils/papers/paper_tables.py $expdir conf/report.yaml conf/papers.yaml
  python3 local/grid_tables.py $expdir conf/report.yaml conf/papers.yaml
fi
