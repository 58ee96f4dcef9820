#!/usr/bin/env bash
# LibriSpeech itself, with models of the papers' sizes: its text and transcripts are fetched
# (resumable, SHA-256 checked); N-best lists are your recogniser's (--nbest-dir), or run_asr.sh
# makes them of the recordings:
#
#   studies/run_full.sh --stop-stage 0 --audio true
#   studies/run_asr.sh --asr whisper:../../tools/asr/whisper-base --audio data/full/audio --stop-stage 1 \
#     --sets "dev-clean dev-other test-clean test-other"
#   studies/run_full.sh --nbest-dir data/asr --nbest-suffix /nbest.jsonl
#
# Weights are tuned on dev, which is dev-clean and dev-other.

# shellcheck disable=SC2086  # --train-opts are words
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

corpus=full       # its name in the report, beside the papers' figures
openslr=https://www.openslr.org/resources # where to fetch; mirrors:
                  # https://us.openslr.org/resources and others
audio=false       # true: fetch the recordings of the four sets too (1.3 GB), for run_asr.sh
nbest_dir=        # N-best lists of your recogniser: DIR/dev-clean.jsonl, DIR/dev-other.jsonl ..
nbest_suffix=.jsonl # what follows the name of a set, as in .jsonl.gz; empty: DIR/dev-clean, a file
                  # or a directory
nbest_format=jsonl # their format, one that lmtools convert knows
experiment=conf/experiment.yaml # which scores there are, what is combined, how it is tuned
vocab_size=30000  # pieces of the subword model
shard_size=       # bytes of text of a shard of the LMs' training corpus, as in 500M; training holds
                  # one shard, several processes write them; empty: one file
conf=../../conf   # directory with a YAML file for each neural LM
train_opts=       # key=value settings over the YAML files
nj=3              # processes that train and score at a time; 1 with a GPU
datadir=data/full # for prepared data
expdir=exp/full   # for models, scores and results
options "$@"
[[ $nbest_dir ]] || ((stage > 1 || stop_stage < 1)) ||
  wrong "--nbest-dir names the directory of your recogniser's lists; give it, or --stop-stage 0"

if stage 0 "get data" studies/local/full.sha256 : "$datadir/local/librispeech-lm-norm.txt.gz" \
  "$datadir"/local/{dev,test}-{clean,other}.text; then
  if [[ $audio = true ]]; then
    bash studies/local/get_full.sh "$datadir/local" "$openslr" "$datadir/audio"
  else
    bash studies/local/get_full.sh "$datadir/local" "$openslr"
  fi
fi

if stage 1 "prepare text and lists" "$datadir/local/librispeech-lm-norm.txt.gz" \
  "$datadir"/local/{dev,test}-{clean,other}.text "$nbest_dir" \
  : "$datadir"/{train,valid,dev,{dev,test}-{clean,other}}/text \
  "$datadir"/{dev,{dev,test}-{clean,other}}/nbest.jsonl; then
  python3 studies/local/prepare_full.py "$datadir/local" "$datadir"
  for set in {dev,test}-{clean,other}; do
    lmtools convert "$nbest_dir/$set$nbest_suffix" "$datadir/$set/nbest.jsonl" \
      --format "$nbest_format" --to jsonl --ref "$datadir/$set/text" --depth 50
  done
  bash studies/local/join.sh "$datadir" dev dev-clean dev-other
  lmtools corpus --text "$datadir/train/text" --ref "$datadir"/{dev,test}-{clean,other}/nbest.jsonl
fi

if stage 2 "subword and binarise" "$datadir"/{train,valid}/text \
  : "$expdir/subword" "$expdir"/{train,valid}.bin; then
  lmtools subword --text "$datadir/train/text" --type bpe --vocab-size "$vocab_size" \
    --normaliser librispeech --nj "$nj" --out "$expdir/subword"
  lmtools corpus --text "$datadir/train/text" --subword "$expdir/subword" --nj "$nj" \
    ${shard_size:+--shard-size "$shard_size"} --out "$expdir/train.bin"
  lmtools corpus --text "$datadir/valid/text" --subword "$expdir/subword" --out "$expdir/valid.bin"
fi

if stage 3 "train LMs" "$datadir/train/text" "$expdir/subword" "$expdir"/{train,valid}.bin "$conf" \
  : "$expdir/lm/ngram/config.yaml" "$expdir"/lm/{causal,masked,tta}/model.safetensors; then
  submit lmtools ngram --text "$datadir/train/text" --order 5 --normaliser librispeech \
    --out "$expdir/lm/ngram"
  for lm in causal masked tta; do
    echo --conf "$conf/$lm.yaml" --train "$expdir/train.bin" --valid "$expdir/valid.bin" \
      --out "$expdir/lm/$lm" $train_opts
  done | each lmtools train
fi

if stage 4 "score" "$experiment" "$datadir/valid/text" "$datadir"/{dev,test}-{clean,other}/text \
  "$datadir"/{dev,{dev,test}-{clean,other}}/nbest.jsonl "$expdir/lm/ngram/config.yaml" \
  "$expdir"/lm/{causal,masked,tta}/model.safetensors : "$expdir/ppl" "$expdir/score"; then
  lmtools ppl --experiment "$experiment" --lm "$expdir/lm/{lm}" --text "$datadir/valid/text" \
    --precision auto --nj "$nj" --cache "$expdir/cache" \
    --out "$expdir/ppl/{lm}/valid.json"
  for set in {dev,test}-{clean,other}; do
    lmtools ppl --experiment "$experiment" --lm "$expdir/lm/{lm}" --text "$datadir/$set/text" \
      --kaldi --precision auto --nj "$nj" --cache "$expdir/cache" \
      --out "$expdir/ppl/{lm}/$set.json"
  done
  score_sets "$experiment" "$expdir/lm/{lm}" "$datadir" "$expdir" \
    "dev dev-clean dev-other test-clean test-other"
fi

if stage 5 "tune on dev, rescore all sets" "$experiment" \
  "$datadir"/{dev,{dev,test}-{clean,other}}/nbest.jsonl "$expdir/score" \
  : "$expdir/tune" "$expdir/rescore"; then
  rescore_sets "$experiment" "$datadir" "$expdir" dev \
    "dev dev-clean dev-other test-clean test-other"
fi

if stage 6 "report" "$experiment" conf/report.yaml "$expdir/tune" "$expdir/rescore" \
  : "$expdir"/report/{RESULTS.md,index.html}; then
  lmtools report "$expdir" --experiment "$experiment" --conf conf/report.yaml \
    --nbest "$datadir"/{dev,{dev,test}-{clean,other}}/nbest.jsonl --title "${PWD##*/} ($corpus)"
  python3 ../../utils/papers/paper_tables.py "$expdir" conf/report.yaml conf/papers.yaml
fi
