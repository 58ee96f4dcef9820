#!/usr/bin/env bash
# LibriSpeech: language models trained on text rescore N-best lists of speech, and are compared.
#
# --corpus mini, the default: Bible verses spoken by synthetic voices, decoded by a real recogniser.
# --corpus mini-real: LibriSpeech's speech, decoded by Whisper, and ten novels; it needs
# --train-opts steps=2200. Neither needs a network. Your own corpus: a directory with such files.
#
# From what this leaves scripts in studies/ go on: run_lattices.sh, run_paper.sh (other rows of the
# T-TA paper), run_asr.sh (your recordings), run_lists.sh (your lists). run_full.sh fetches
# LibriSpeech.

# shellcheck disable=SC2086  # --normaliser and --train-opts are words
cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=mini       # its directory: train.txt, valid.txt, a sentence a line; dev.nbest.jsonl and
                  # test.nbest.jsonl, with references; plain, .gz or .xz
experiment=conf/experiment.yaml # which scores there are, what is combined, how it is tuned
leave_out=false   # true: without lines of train.txt that share seven words in a row or a sentence
                  # with references of dev and test, which stage 1 counts; mini has 31
depth=20          # hypotheses an utterance
normaliser=librispeech # of text and hypotheses: librispeech (lower case, no punctuation), cased or
                  # none; flags that lmtools subword knows may follow, as in
                  # "librispeech --apostrophe strip"
vocab_size=2000   # pieces of the subword model
order=4           # of the n-gram
conf=conf         # directory with a YAML file for each neural LM
train_opts=       # key=value settings over the YAML files, as in "steps=100 optim.lr=1e-3"
precision=auto    # of matrix products in scoring: auto, float32 or bfloat16
nj=3              # processes that train and score at a time; 1 with a GPU
datadir=data      # for prepared data
expdir=exp        # for models, scores and results
options "$@"

if stage 0 "get data" "$corpus" : "$datadir"/local/{train,valid}.txt \
  "$datadir"/local/{dev,test}.nbest.jsonl; then
  python3 local/get_data.py "$corpus" "$datadir/local"
fi

if stage 1 "prepare text and lists" "$datadir"/local/{train,valid}.txt \
  "$datadir"/local/{dev,test}.nbest.jsonl \
  : "$datadir"/{train,valid,dev,test}/text "$datadir"/{dev,test}/nbest.jsonl; then
  mkdir -p "$datadir/train" "$datadir/valid"
  cp "$datadir/local/valid.txt" "$datadir/valid/text"
  for set in dev test; do
    lmtools convert "$datadir/local/$set.nbest.jsonl" "$datadir/$set/nbest.jsonl" \
      --format jsonl --to jsonl --depth "$depth"
    python3 ../../utils/references.py "$datadir/$set/nbest.jsonl" "$datadir/$set/text"
  done
  if [[ $leave_out = true ]]; then
    lmtools corpus --text "$datadir/local/train.txt" --ref "$datadir"/{dev,test}/nbest.jsonl \
      --leave-out-overlap --out "$datadir/train/text"
  else
    lmtools corpus --text "$datadir/local/train.txt" --ref "$datadir"/{dev,test}/nbest.jsonl
    cp "$datadir/local/train.txt" "$datadir/train/text"
  fi
fi

if stage 2 "subword and binarise" "$datadir"/{train,valid}/text \
  : "$expdir/subword" "$expdir"/{train,valid}.bin; then
  lmtools subword --text "$datadir/train/text" --type bpe --vocab-size "$vocab_size" \
    --normaliser $normaliser --nj "$nj" --out "$expdir/subword"
  for part in train valid; do
    lmtools corpus --text "$datadir/$part/text" --subword "$expdir/subword" --nj "$nj" \
      --out "$expdir/$part.bin"
  done
fi

if stage 3 "train LMs" "$datadir/train/text" "$expdir/subword" "$expdir"/{train,valid}.bin "$conf" \
  : "$expdir/lm/ngram/config.yaml" "$expdir"/lm/{causal,masked,tta}/model.safetensors; then
  submit lmtools ngram --text "$datadir/train/text" --order "$order" --normaliser $normaliser \
    --out "$expdir/lm/ngram"
  for lm in causal masked tta; do
    echo --conf "$conf/$lm.yaml" --train "$expdir/train.bin" --valid "$expdir/valid.bin" \
      --out "$expdir/lm/$lm" $train_opts
  done | each lmtools train
fi

if stage 4 "score" "$experiment" "$datadir"/{valid,test}/text "$datadir"/{dev,test}/nbest.jsonl \
  "$expdir/lm/ngram/config.yaml" "$expdir"/lm/{causal,masked,tta}/model.safetensors \
  : "$expdir/ppl" "$expdir/score"; then
  lmtools ppl --experiment "$experiment" --lm "$expdir/lm/{lm}" --text "$datadir/valid/text" \
    --precision "$precision" --nj "$nj" --cache "$expdir/cache" \
    --out "$expdir/ppl/{lm}/valid.json"
  lmtools ppl --experiment "$experiment" --lm "$expdir/lm/{lm}" --text "$datadir/test/text" \
    --kaldi --precision "$precision" --nj "$nj" --cache "$expdir/cache" \
    --out "$expdir/ppl/{lm}/test.json"
  score_sets "$experiment" "$expdir/lm/{lm}" "$datadir" "$expdir" "dev test"
fi

if stage 5 "tune on dev, rescore dev and test" "$experiment" "$datadir"/{dev,test}/nbest.jsonl \
  "$expdir/score" : "$expdir/tune" "$expdir/rescore"; then
  rescore_sets "$experiment" "$datadir" "$expdir" dev "dev test"
fi

if stage 6 "report" "$experiment" conf/report.yaml "$datadir"/{dev,test}/nbest.jsonl \
  "$expdir/tune" "$expdir/rescore" : "$expdir"/report/{RESULTS.md,index.html}; then
  lmtools report "$expdir" --experiment "$experiment" --conf conf/report.yaml \
    --nbest "$datadir"/{dev,test}/nbest.jsonl --title "${PWD##*/} (${corpus##*/})"
  python3 ../../utils/papers/paper_tables.py "$expdir" conf/report.yaml
fi
