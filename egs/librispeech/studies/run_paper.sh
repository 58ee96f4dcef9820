#!/usr/bin/env bash
# The other rows of the T-TA paper's Table 1 (Shin et al. 2020), beside the LMs that run.sh or
# run_full.sh trained: BERT, causal and masked LMs over words (uniSANLM, biSANLM), masked LMs by one
# pass over the intact input; of each LM the sum and the mean over tokens, with weights of its own
# and by (1 - lambda) first pass + lambda LM. And its Figure 4: run time by length.
#
# studies/conf/paper.yaml says what is scored and combined; a BERT of yours stands in a file like it.
# After run_full.sh: --bert-conf ../../conf/bert.yaml --word-conf ../../conf
# --word-opts "--vocab-size 200000" --sets "dev dev-clean dev-other test-clean test-other" --datadir data/full --expdir exp/full

# shellcheck disable=SC2086  # --normaliser, --word-opts and --train-opts are words
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

corpus=mini       # name of run.sh's corpus, in the report
experiment=studies/conf/paper.yaml # which scores there are, what is combined, how it is tuned
sets="dev test"   # sets to rescore; weights are tuned on dev
train_bert=true   # false: a BERT is there, the experiment says where: lms: {bert: hf:DIR}
normaliser=librispeech # of text and hypotheses, as in run.sh
word_opts="--min-count 2" # options of lmtools subword: which words the LMs over words know; what
                  # they do not trains <unk>
bert_conf=studies/conf/bert.yaml # settings of BERT
word_conf=studies/conf/word # directory with causal.yaml and masked.yaml for the LMs over words
train_opts=       # key=value settings over the YAML files
precision=auto    # of matrix products in scoring: auto, float32 or bfloat16
nj=3              # processes that train and score at a time; 1 with a GPU
datadir=data      # with run.sh's data
expdir=exp        # with run.sh's models and scores, for results
options "$@"

if stage 2 "words and binarise" "$datadir"/{train,valid}/text \
  : "$expdir/word/subword" "$expdir"/word/{train,valid}.bin; then
  lmtools subword --text "$datadir/train/text" --type word $word_opts --normaliser $normaliser \
    --nj "$nj" --out "$expdir/word/subword"
  for part in train valid; do
    lmtools corpus --text "$datadir/$part/text" --subword "$expdir/word/subword" --nj "$nj" \
      --out "$expdir/word/$part.bin"
  done
fi

if stage 3 "train LMs" "$expdir"/{,word/}{train,valid}.bin "$bert_conf" "$word_conf" \
  : "$expdir"/lm/{unisanlm,bisanlm}/model.safetensors; then
  {
    [[ $train_bert = false ]] || echo --conf "$bert_conf" --train "$expdir/train.bin" \
      --valid "$expdir/valid.bin" --out "$expdir/lm/bert" $train_opts
    echo --conf "$word_conf/causal.yaml" --train "$expdir/word/train.bin" \
      --valid "$expdir/word/valid.bin" --out "$expdir/lm/unisanlm" $train_opts
    echo --conf "$word_conf/masked.yaml" --train "$expdir/word/train.bin" \
      --valid "$expdir/word/valid.bin" --out "$expdir/lm/bisanlm" $train_opts
  } | each lmtools train
fi

if stage 4 "score" "$experiment" "$datadir/valid/text" "$datadir"/dev/{text,nbest.jsonl} \
  "$expdir/lm/ngram/config.yaml" "$expdir"/lm/{causal,masked,tta}/model.safetensors \
  "$expdir"/lm/{unisanlm,bisanlm}/model.safetensors : "$expdir/ppl" "$expdir/score" \
  "$expdir/bench/speed.json"; then
  lmtools ppl --experiment "$experiment" --lm "$expdir/lm/{lm}" --text "$datadir/valid/text" \
    --precision "$precision" --nj "$nj" --cache "$expdir/cache" \
    --out "$expdir/ppl/{lm}/valid.json"
  for set in $sets; do
    [[ $set = dev ]] || lmtools ppl --experiment "$experiment" --lm "$expdir/lm/{lm}" \
      --text "$datadir/$set/text" --kaldi --precision "$precision" --nj "$nj" \
      --cache "$expdir/cache" --out "$expdir/ppl/{lm}/$set.json"
  done
  score_sets "$experiment" "$expdir/lm/{lm}" "$datadir" "$expdir" "$sets"
  python3 ../../benchmarks/bench.py score --lm causal="$expdir/lm/causal" \
    --lm masked="$expdir/lm/masked" --lm tta="$expdir/lm/tta" --out "$expdir/bench/speed.json"
fi

if stage 5 "tune on dev, rescore all sets" "$experiment" "$datadir/dev/nbest.jsonl" \
  "$expdir/score" : "$expdir/tune" "$expdir/rescore"; then
  rescore_sets "$experiment" "$datadir" "$expdir" dev "$sets"
fi

if stage 6 "report" "$experiment" conf/report.yaml "$datadir"/*/nbest.jsonl \
  "$expdir/tune" "$expdir/rescore" : "$expdir"/report/{RESULTS.md,index.html}; then
  lmtools report "$expdir" --experiment "$experiment" --conf conf/report.yaml \
    --nbest "$datadir"/*/nbest.jsonl --title "${PWD##*/} (${corpus##*/})"
  python3 ../../utils/papers/paper_tables.py "$expdir" conf/report.yaml conf/papers.yaml
fi
