#!/usr/bin/env bash
# What the word vectors of language models bring to tasks (Li et al. 2019): word senses by nearest
# neighbour (its Table 3). LMs are those that run.sh trained, or any of --lm-dirs.

cd "$(dirname "$0")" && . ../../utils/recipe.sh
# shellcheck disable=SC2034  # recipe.sh reads them
recipe_script=./downstream.sh recipe_command=./downstream.sh

wsd_dir=           # word senses: directory with train.tsv and test.tsv, plain, .gz or .xz: SemCor, a
                   # word a line, as tasks/wsd.py says
wordnet=/usr/share/wordnet/index.sense # WordNet's list of senses: Debian's wordnet-sense-index
vectors="elmo-char esulmo-bpe-500" # LMs whose vectors are compared: directories in EXPDIR/lm
lm_dirs=           # other LMs, NAME=DIR each: two-way models, or any other neural LM of ours
layer=last         # layers of the vectors, beside each other: last (as in the paper), all or numbers
nj=2               # texts that are embedded at a time; 1 with a GPU
datadir=data       # for prepared data
expdir=exp         # where LMs are, for vectors and results
options "$@"
[[ $wsd_dir ]] || wrong "--wsd-dir DIR is needed: the directory with train.tsv and test.tsv"

# shellcheck disable=SC2086
language_models "$expdir/lm" $vectors $lm_dirs
# shellcheck disable=SC2034  # stage reads them
sets=(train test) home=$expdir/downstream/wsd
dirs=() && for name in "${names[@]}"; do dirs+=("${lm[$name]}"); done

if stage 0 "prepare" "$wsd_dir" : "$datadir/wsd/{sets}"{.tsv,.txt}; then
  python3 ../../utils/unpack.py "$wsd_dir" "$datadir/wsd" {train,test}.tsv
  for set in "${sets[@]}"; do
    python3 tasks/wsd.py text "$datadir/wsd/$set.tsv" "$datadir/wsd/$set.txt"
  done
fi

if stage 1 "embed" "${dirs[@]}" "$datadir/wsd/{sets}.txt" : "$home/{names}/{sets}.npz"; then
  for name in "${names[@]}"; do
    for set in "${sets[@]}"; do
      quoted --lm "${lm[$name]}" --pool words --layer "$layer" --text "$datadir/wsd/$set.txt" \
        --out "$home/$name/$set.npz"
    done
  done | each 1 lmtools embed
fi

if stage 2 "evaluate" "$home/{names}/{sets}.npz" "$datadir/wsd/{sets}.tsv" "$wordnet" \
  : "$home/{names}.json"; then
  for name in "${names[@]}"; do
    python3 tasks/wsd.py evaluate --train "$datadir/wsd/train.tsv" --test "$datadir/wsd/test.tsv" \
      --index "$wordnet" --vectors "$home/$name"/{train,test}.npz --out "$home/$name.json"
  done
fi

if stage 3 "report" "$home/{names}.json" conf/downstream.yaml : "$home/RESULTS.md"; then
  found=() && for name in "${names[@]}"; do found+=("$name=$home/$name.json"); done
  python3 tasks/wsd.py report --conf conf/downstream.yaml --out "$home/RESULTS.md" "${found[@]}"
  cat "$home/RESULTS.md"
fi
