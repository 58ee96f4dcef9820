#!/usr/bin/env bash
# Controls of sentence similarity: how far cosines agree with people's judgements where nothing was
# learnt. Rows are untrained uniLM, biLM and T-TA (three seeds, the shape of the LMs that run.sh
# trained), random vectors of words, words in common, the length of both sentences; beside them word
# vectors, tf-idf and the trained LMs, with Williams' test of each against its untrained ones.
#
#   ./run.sh && ./run_stsb.sh --stop-stage 1 && ./run_sick.sh --stop-stage 1 && ./run_controls.sh
#
# Stage 3 of run.sh (trained LMs) may be missing: --trained "". A run that was stopped goes on.

# shellcheck disable=SC2086  # names and options are words without blanks
cd "$(dirname "$0")" && . ../../utils/recipe.sh

models=exp         # expdir of run.sh: subword and valid.bin are taken, words.txt and trained LMs
trained="causal masked tta" # those of its LMs that are compared with untrained ones
text=data/train/text # what they were trained on, for tf-idf
pairs="stsb sick"  # of run_stsb.sh and run_sick.sh: DATADIR/NAME/test/pairs.tsv
conf=conf          # directory with a YAML file for each LM: causal, masked, tta
train_opts=        # key=value settings over the YAML files, as in run.sh
precision=auto     # of matrix products: auto, float32 or bfloat16
nj=3               # processes that train at a time
datadir=data       # of run_stsb.sh and run_sick.sh
expdir=exp/controls # for pairs, untrained models, vectors and results
options "$@"

untrained=$(echo {causal,masked,tta}-{1,2,3}) # LM and seed, as conf/controls.yaml has them
files='' given=''
for set in $pairs; do
  files+=" $datadir/$set/test/pairs.tsv" given+=" $set=$datadir/$set/test/pairs.tsv"
done
vectors=
for system in $untrained $trained words tfidf random-{1,2,3}; do
  vectors+=" $expdir/embed/$system.npz"
done

if stage 1 "prepare pairs" $files : $expdir/pairs/sentences.txt; then
  python3 local/prepare_pairs.py tsv $expdir/pairs $given
fi

if stage 3 "models without training" $models/valid.bin $expdir/pairs/sentences.txt $conf conf \
  ../../conf : $expdir/lm $expdir/random-{1,2,3}.txt; then
  for system in $untrained; do
    # one step at the rate 0 leaves the weights as the seed made them
    echo --conf $conf/${system%-*}.yaml --train $models/valid.bin --valid $models/valid.bin \
      --out $expdir/lm/$system $train_opts seed=${system#*-} steps=1 optim.lr=0
  done | each lmtools train
  for seed in 1 2 3; do
    python3 local/random_vectors.py $seed $expdir/pairs/sentences.txt $expdir/random-$seed.txt
  done
fi

if stage 4 "vectors and similarity" conf/controls.yaml $text $models/words.txt $expdir/lm \
  $expdir/random-{1,2,3}.txt $expdir/pairs/sentences.txt : $expdir/embed $expdir/sts; then
  lmtools embed --experiment conf/controls.yaml --lm "$expdir/lm/{lm}" \
    --text $expdir/pairs/sentences.txt --precision $precision --cache $expdir/cache \
    --out "$expdir/embed/{vectors}.npz"
  for lm in $trained; do
    lmtools embed --lm $models/lm/$lm --layer all --text $expdir/pairs/sentences.txt \
      --precision $precision --cache $expdir/cache --out $expdir/embed/$lm.npz
  done
  for seed in 1 2 3; do
    lmtools embed --lm words:$expdir/random-$seed.txt --text $expdir/pairs/sentences.txt \
      --out $expdir/embed/random-$seed.npz
  done
  lmtools embed --lm words:$models/words.txt --text $expdir/pairs/sentences.txt \
    --out $expdir/embed/words.npz
  lmtools embed --lm tfidf:$text --text $expdir/pairs/sentences.txt \
    --out $expdir/embed/tfidf.npz
  for set in $pairs; do
    lmtools sts --pairs $expdir/pairs/$set/pairs.tsv --vectors $vectors \
      --out "$expdir/sts/{system}/$set.json"
    python3 local/surface.py length $expdir/pairs/$set/pairs.tsv $expdir/sts/length/$set.json
    python3 local/surface.py overlap $expdir/pairs/$set/pairs.tsv $expdir/sts/overlap/$set.json
  done
fi

if stage 6 "table" $expdir/sts : $expdir/controls.md; then
  python3 local/controls_table.py $expdir/sts $expdir/controls.md $pairs
fi
