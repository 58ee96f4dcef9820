#!/usr/bin/env bash
# Words and confidences: confidences before and after calibration, two recognisers combined, the
# consensus of lattices. Lists are those that stage 1 of run_books.sh prepares, or others of the same
# form.
#
#   studies/run_networks.sh --lists-dir data/books --lm exp/books/lm/ngram4
#
# Results are in EXPDIR/STEP/CASE/*.result; studies/local/networks.sh has the commands.

# shellcheck disable=SC2086  # cases and options are words
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

lists_dir=        # lists with references, DIR/CASE/{dev,test}/nbest.jsonl and text beside them
cases="native non-native" # cases; each is tuned on its dev
lm=               # language model that scores them
scales="0.1 0.2 0.3 0.5 0.7 1" # factors of scores that are tried on dev
tune_opts="--fix avg=0" # options of lmtools tune
vosk=data/books/vosk/dev # another recogniser's lists of native/test; empty: none
lattices=         # lattices of a recogniser with one score, in a file; empty: none
lattice_refs=     # plain text of what was said there, a line a lattice
expdir=exp/networks # for scores, networks and results
options "$@"
[[ $lists_dir && $lm ]] || wrong "--lists-dir has the lists, --lm scores them; name both"

if stage 1 "score" $lists_dir $lm : $expdir/score; then
  for case in $cases; do
    bash studies/local/networks.sh score $lists_dir $expdir $case $lm
  done
fi

if stage 2 "tune, rescore" $lists_dir $expdir/score : $expdir/tune; then
  for case in $cases; do
    bash studies/local/networks.sh tune $lists_dir $expdir $case $tune_opts
  done
fi

if stage 3 "networks, calibration" $lists_dir $expdir/{score,tune} : $expdir/build; then
  for case in $cases; do
    bash studies/local/networks.sh build $lists_dir $expdir $case "$scales"
  done
fi

if stage 4 "two recognisers" $lists_dir $vosk : $expdir/rover; then
  mkdir -p $expdir/rover
  [[ ! $vosk ]] || bash studies/local/networks.sh rover $lists_dir $expdir native $vosk
fi

if stage 5 "lattices" $lattices $lattice_refs : $expdir/lattices; then
  mkdir -p $expdir/lattices
  [[ ! $lattices ]] ||
    bash studies/local/networks.sh lattices $lists_dir $expdir all $lattices $lattice_refs "$scales"
fi
