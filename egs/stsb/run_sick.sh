#!/usr/bin/env bash
# SICK: how far cosines of sentence vectors agree with people's judgements, by the language models
# and word vectors that run.sh trained (./run.sh --stop-stage 3).
#
# The pairs are fetched, or those of --pairs-dir; dev is SICK's trial set. Models see the text that
# run.sh was given, see run_stsb.sh.

# shellcheck disable=SC2086  # paths are words without blanks
cd "$(dirname "$0")" && . ../../utils/recipe.sh

pairs_dir=         # directory with SICK_trial.txt and SICK_test_annotated.txt, or SICK.txt, the
                   # release in one file, which has fewer pairs, plain, .gz or .xz; nothing is
                   # fetched then
url=http://alt.qcri.org/semeval2014/task1/data/uploads # where to fetch sick_trial.zip and
                   # sick_test_annotated.zip
models=exp         # expdir of run.sh: lm/{causal,masked,tta} and words.txt are taken
text=data/train/text # what they were trained on, for tf-idf
corpus=sick        # its name in the report
precision=auto     # of matrix products: auto, float32 or bfloat16
datadir=data/sick  # for prepared data
expdir=exp/sick    # for vectors and results
options "$@"

if stage 0 "get data" ${pairs_dir:-local/sick.sha256} \
  : $datadir/local/SICK_{trial,test_annotated}.txt; then
  python3 local/get_pairs.py sick $datadir/local $url "$pairs_dir"
fi

if stage 1 "prepare pairs" $datadir/local/SICK_{trial,test_annotated}.txt \
  : $datadir/{dev,test}/pairs.tsv $datadir/sentences.txt; then
  python3 local/prepare_pairs.py sick $datadir \
    dev=$datadir/local/SICK_trial.txt test=$datadir/local/SICK_test_annotated.txt
fi

if stage 4 "score: vectors and similarity" conf/experiment.yaml $text $models/words.txt \
  $models/lm/{causal,masked,tta}/model.safetensors \
  $datadir/sentences.txt $datadir/{dev,test}/pairs.tsv \
  : $expdir/sts/{causal,causal-eos,masked,masked-masked,tta,tta-eos,words,tfidf}/{dev,test}.json
then
  lmtools embed --experiment conf/experiment.yaml --lm "$models/lm/{lm}" \
    --text $datadir/sentences.txt --precision $precision --cache $expdir/cache \
    --out "$expdir/embed/{vectors}.npz"
  lmtools embed --lm words:$models/words.txt --text $datadir/sentences.txt \
    --out $expdir/embed/words.npz
  lmtools embed --lm tfidf:$text --text $datadir/sentences.txt --out $expdir/embed/tfidf.npz
  for set in dev test; do
    lmtools sts --pairs $datadir/$set/pairs.tsv --out "$expdir/sts/{system}/$set.json" \
      --vectors $expdir/embed/{causal,causal-eos,masked,masked-masked,tta,tta-eos,words,tfidf}.npz
  done
fi

if stage 6 "report" conf/{experiment,report}.yaml \
  $expdir/sts/{causal,causal-eos,masked,masked-masked,tta,tta-eos,words,tfidf}/{dev,test}.json \
  : $expdir/report/{RESULTS.md,index.html}; then
  lmtools report $expdir --experiment conf/experiment.yaml --conf conf/report.yaml \
    --title "${PWD##*/} ($corpus)"
  python3 ../../utils/papers/paper_tables.py $expdir conf/report.yaml conf/papers.yaml
fi
