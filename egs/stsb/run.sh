#!/usr/bin/env bash
# Sentence similarity: train language models on text, make vectors of sentences with them, compare
# their cosines with judgements of similarity, and rescore N-best lists with the same models.
#
# The mini corpus needs no network: pairs of verses of two Bibles, whose similarity is constructed,
# not judged by people; lists of speech that egs/librispeech brings. Nothing is trained on pairs or
# lists. run_stsb.sh and run_sick.sh take judged pairs, run_paper.sh adds BERT, run_speed.sh times.

# shellcheck disable=SC2086  # paths and options are words without blanks
cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=mini        # its directory: train.txt valid.txt dev.tsv test.tsv (left TAB right TAB
                   # similarity), plain, .gz or .xz; yours in this form will do as well
text=              # directory with train.txt and valid.txt, what LMs and word vectors are trained
                   # on; empty: the corpus's
nbest_dir=../librispeech/mini # directory with dev.nbest.jsonl and test.nbest.jsonl to rescore, with
                   # references; utterances that are in the text are left out
depth=20           # hypotheses an utterance
normaliser=librispeech # of the text, of sentences and hypotheses: librispeech (lower case, no
                   # punctuation), cased or none; flags that lmtools subword knows may follow
subword=bpe        # bpe, unigram, word or char: what LMs read and predict
vocab_size=4000    # ids of the subword model
conf=conf          # directory with a YAML file for each LM: causal, masked, tta
train_opts=        # key=value settings over the YAML files, as in steps=100
dim=100            # values of each word vector that is trained here
precision=auto     # of matrix products: auto, float32 or bfloat16
nj=3               # processes that train and score at a time; 1 with a GPU
datadir=data       # for prepared data
expdir=exp         # for models, vectors, scores and results
options "$@"

raw=$datadir/local
if stage 0 "get data" $corpus ${text:-$corpus} $nbest_dir \
  : $raw/{train,valid}.txt $raw/{dev,test}.{tsv,nbest.jsonl}; then
  python3 ../../utils/unpack.py $corpus $raw dev.tsv test.tsv
  python3 ../../utils/unpack.py ${text:-$corpus} $raw train.txt valid.txt
  python3 ../../utils/unpack.py $nbest_dir $raw dev.nbest.jsonl test.nbest.jsonl
fi

if stage 1 "prepare text and lists" $raw/{train,valid}.txt $raw/{dev,test}.{tsv,nbest.jsonl} \
  : $datadir/{train,valid}/text $datadir/{dev,test}/{pairs.tsv,nbest.jsonl} $datadir/sentences.txt
then
  mkdir -p $datadir/train $datadir/valid
  cp $raw/train.txt $datadir/train/text
  cp $raw/valid.txt $datadir/valid/text
  python3 local/prepare_pairs.py tsv $datadir dev=$raw/dev.tsv test=$raw/test.tsv
  for set in dev test; do
    python3 local/prepare_lists.py --depth $depth --text $datadir/train/text \
      $raw/$set.nbest.jsonl $datadir/$set/nbest.jsonl
  done
fi

if stage 2 "subword and binarise" $datadir/{train,valid}/text \
  : $expdir/subword $expdir/{train,valid}.bin; then
  lmtools subword --text $datadir/train/text --type $subword --vocab-size $vocab_size \
    --normaliser $normaliser --nj $nj --out $expdir/subword
  for set in train valid; do
    lmtools corpus --text $datadir/$set/text --subword $expdir/subword --nj $nj \
      --out $expdir/$set.bin
  done
fi

if stage 3 "train LMs and word vectors" $datadir/train/text $expdir/{train,valid}.bin \
  $conf conf ../../conf \
  : $expdir/lm/{causal,masked,tta}/model.safetensors $expdir/words.txt; then
  submit python3 local/word_vectors.py --text $datadir/train/text --dim $dim --out $expdir/words.txt
  for lm in causal masked tta; do
    echo --conf $conf/$lm.yaml --train $expdir/train.bin --valid $expdir/valid.bin \
      --out $expdir/lm/$lm $train_opts
  done | each lmtools train
fi

if stage 4 "score: vectors, similarity, lists" conf/experiment.yaml $expdir/words.txt \
  $expdir/lm/{causal,masked,tta}/model.safetensors \
  $datadir/train/text $datadir/sentences.txt $datadir/{dev,test}/{pairs.tsv,nbest.jsonl} \
  : $expdir/sts/{causal,causal-eos,masked,masked-masked,tta,tta-eos,words,tfidf}/{dev,test}.json \
  $expdir/score/{causal,masked,tta}/{dev,test}.scores; then
  lmtools embed --experiment conf/experiment.yaml --lm "$expdir/lm/{lm}" \
    --text $datadir/sentences.txt --precision $precision --cache $expdir/cache \
    --out "$expdir/embed/{vectors}.npz"
  lmtools embed --lm words:$expdir/words.txt --text $datadir/sentences.txt \
    --out $expdir/embed/words.npz
  lmtools embed --lm tfidf:$datadir/train/text --text $datadir/sentences.txt \
    --out $expdir/embed/tfidf.npz
  for set in dev test; do
    lmtools sts --pairs $datadir/$set/pairs.tsv --out "$expdir/sts/{system}/$set.json" \
      --vectors $expdir/embed/{causal,causal-eos,masked,masked-masked,tta,tta-eos,words,tfidf}.npz
  done
  score_sets conf/experiment.yaml "$expdir/lm/{lm}" $datadir $expdir "dev test"
fi

if stage 5 "tune on dev and rescore test" conf/experiment.yaml $datadir/{dev,test}/nbest.jsonl \
  $expdir/score/{causal,masked,tta}/{dev,test}.scores \
  : $expdir/tune/{first-pass,causal,masked,tta}/weights.json \
  $expdir/rescore/{first-pass,causal,masked,tta}/{dev,test}.txt; then
  rescore_sets conf/experiment.yaml $datadir $expdir dev "dev test"
fi

if stage 6 "report" conf/experiment.yaml conf/report.yaml $datadir/{dev,test}/nbest.jsonl \
  $expdir/rescore/{first-pass,causal,masked,tta}/{dev,test}.txt \
  $expdir/sts/{causal,causal-eos,masked,masked-masked,tta,tta-eos,words,tfidf}/{dev,test}.json \
  : $expdir/report/{RESULTS.md,index.html}; then
  lmtools report $expdir --experiment conf/experiment.yaml --conf conf/report.yaml \
    --nbest $datadir/{dev,test}/nbest.jsonl --title "${PWD##*/} ($corpus)"
  python3 ../../utils/papers/paper_tables.py $expdir conf/report.yaml
fi
