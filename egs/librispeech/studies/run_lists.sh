#!/usr/bin/env bash
# Your N-best lists rescored with LMs that are there: nothing is trained. The LMs are run.sh's
# (--lm-dir), or those that the experiment names (`lms:`).
#
#   studies/run_lists.sh --nbest-dir mini-real/ocean --nbest-suffix .nbest.jsonl.xz
#   studies/run_lists.sh --nbest-dir DIR --sets "calls" --tune-on calls --experiment studies/conf/folds.yaml
#
# Without a set apart to tune on, studies/conf/folds.yaml rescores each speaker by weights that were tuned
# on the others.

# shellcheck disable=SC2086  # sets and references are words
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

nbest_dir=        # N-best lists with references: DIR/SET.jsonl for each set; references may be in
                  # DIR/SET.text (Kaldi) in place of the lists
nbest_suffix=.jsonl # what follows the name of a set; empty: DIR/SET, a file or a directory
nbest_format=jsonl # their format, one that lmtools convert knows
sets="dev test"   # sets to rescore
tune_on=dev       # set to tune weights on; all: all of them together
experiment=conf/experiment.yaml # which scores there are, what is combined, how it is tuned
lm_dir=exp/lm     # the LMs: DIR/ngram, DIR/causal ..
depth=50          # hypotheses an utterance
precision=auto    # of matrix products in scoring: auto, float32 or bfloat16
nj=2              # processes that score at a time; 1 with a GPU
datadir=data/lists # for prepared lists
expdir=exp/lists  # for scores and results
options "$@"
[[ $nbest_dir ]] || wrong "--nbest-dir names the directory of your lists; give it"

if stage 1 "prepare lists" "$nbest_dir" : "$datadir"; then
  for set in $sets; do
    references=
    [[ ! -e $nbest_dir/$set.text ]] || references="--ref $nbest_dir/$set.text"
    lmtools convert "$nbest_dir/$set$nbest_suffix" "$datadir/$set/nbest.jsonl" \
      --format "$nbest_format" --to jsonl --depth "$depth" $references
    python3 ../../utils/references.py "$datadir/$set/nbest.jsonl" "$datadir/$set/text"
  done
  [[ $tune_on != all ]] || bash studies/local/join.sh "$datadir" all $sets
fi

[[ $tune_on != all ]] || sets="all $sets"
if stage 4 "score" "$experiment" "$lm_dir" "$datadir/$tune_on/nbest.jsonl" : "$expdir/score"; then
  score_sets "$experiment" "$lm_dir/{lm}" "$datadir" "$expdir" "$sets"
fi

if stage 5 "tune, rescore all sets" "$experiment" "$datadir/$tune_on/nbest.jsonl" \
  "$expdir/score" : "$expdir/tune" "$expdir/rescore"; then
  rescore_sets "$experiment" "$datadir" "$expdir" "$tune_on" "$sets"
fi

if stage 6 "report" "$experiment" conf/report.yaml "$datadir"/*/nbest.jsonl "$expdir/tune" \
  "$expdir/rescore" : "$expdir"/report/{RESULTS.md,index.html}; then
  lmtools report "$expdir" --experiment "$experiment" --conf conf/report.yaml \
    --nbest "$datadir"/*/nbest.jsonl --title "${PWD##*/} (${nbest_dir##*/})"
  python3 ../../utils/papers/paper_tables.py "$expdir" conf/report.yaml conf/papers.yaml
fi
