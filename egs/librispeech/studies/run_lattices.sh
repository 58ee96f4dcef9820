#!/usr/bin/env bash
# Lattices of speech, rescored with LMs that run.sh trained: the n-gram, and T-TA with the n-gram.
#
# Dev's lattices are rescored by weights by hand; lists out of them tune the weights by which test's
# are rescored; studies/local/rescore_lattices.sh has the commands, and takes other LMs. The mini corpus has
# lattices; --lattice-dir has your recogniser's, of the utterances in data/dev and data/test.

# shellcheck disable=SC2086  # --lattice-opts are words
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

corpus=mini       # directory with dev.lattices.tar.xz and test.lattices.tar.xz
lattice_dir=      # lattices of your recogniser in their place, DIR/dev and DIR/test: files or
                  # directories
lattice_format=slf # their format, one that lmtools convert knows, as in
                  # kaldi:words=data/lang/words.txt
lattice_case=upper # upper or lower: make their words so, as the references are; empty: leave them
lattice_opts="--set tokens=8 cover_beam=60 --exact 20" # options of lmtools lattice rescore
experiment=conf/experiment.yaml # whose systems on lists stand in the report, too
precision=auto    # of matrix products: auto, float32 or bfloat16
nj=2              # processes at a time
datadir=data      # for prepared data
expdir=exp        # with run.sh's models, for results
options "$@"

if stage 0 "get lattices" "${lattice_dir:-$corpus}" :; then
  [[ $lattice_dir ]] || python3 ../../utils/unpack.py "$corpus" "$datadir/local" \
    dev.lattices.tar.xz test.lattices.tar.xz
fi

if stage 1 "prepare lattices" "${lattice_dir:-$datadir/local/lattices}" \
  : "$datadir"/{dev,test}/lattices; then
  for set in dev test; do
    rm -rf "$datadir/$set/lattices"
    lmtools convert "${lattice_dir:-$datadir/local/lattices}/$set" "$datadir/$set/lattices" \
      --format "$lattice_format" --to slf ${lattice_case:+--case "$lattice_case"}
  done
fi

if stage 5 "rescore dev, tune on it, rescore test" "$datadir"/{dev,test}/{text,lattices} \
  "$expdir/lm/ngram/config.yaml" "$expdir/lm/tta/model.safetensors" \
  : "$expdir"/tune/lattice-{ngram,tta+ngram}/weights.json \
  "$expdir"/rescore/lattice-{ngram,tta+ngram}/{dev,test}.txt; then
  bash studies/local/rescore_lattices.sh ngram "$datadir" "$expdir" "dev test" --precision "$precision" \
    --nj "$nj" $lattice_opts --lm ngram="$expdir/lm/ngram"
  bash studies/local/rescore_lattices.sh tta+ngram "$datadir" "$expdir" "dev test" \
    --precision "$precision" --nj "$nj" $lattice_opts --lm tta="$expdir/lm/tta" \
    --lm ngram="$expdir/lm/ngram"
fi

if stage 6 "report" "$experiment" conf/report.yaml "$datadir"/{dev,test}/nbest.jsonl \
  "$expdir"/rescore/lattice-{ngram,tta+ngram}/{dev,test}.txt \
  : "$expdir"/report/{RESULTS.md,index.html}; then
  lmtools report "$expdir" --experiment "$experiment" --conf conf/report.yaml \
    --nbest "$datadir"/{dev,test}/nbest.jsonl --title "${PWD##*/} (${corpus##*/})"
  python3 ../../utils/papers/paper_tables.py "$expdir" conf/report.yaml conf/papers.yaml
fi
