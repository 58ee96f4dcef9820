#!/usr/bin/env bash
# The STS Benchmark: how far cosines of sentence vectors agree with people's judgements, by the
# language models and word vectors that run.sh trained (./run.sh --stop-stage 3).
#
# The pairs are fetched, or those of --pairs-dir. Models see the text that run.sh was given: the
# mini corpus's Bibles are far from news, captions and forums, and figures then say little. For
# models of the T-TA paper's size:
#   ./run.sh --text DIR --conf ../wmt13/conf/full --vocab-size 30000 \
#     --datadir data/full --expdir exp/full --stop-stage 3
#   ./run_stsb.sh --models exp/full --text data/full/train/text

# shellcheck disable=SC2086  # paths are words without blanks
cd "$(dirname "$0")" && . ../../utils/recipe.sh

pairs_dir=         # directory with sts-dev.csv and sts-test.csv, plain, .gz or .xz; nothing is
                   # fetched then
url=http://ixa2.si.ehu.eus/stswiki/images/4/48 # where to fetch Stsbenchmark.tar.gz
models=exp         # expdir of run.sh: lm/{causal,masked,tta} and words.txt are taken
text=data/train/text # what they were trained on, for tf-idf
corpus=stsb        # its name in the report
precision=auto     # of matrix products: auto, float32 or bfloat16
datadir=data/stsb  # for prepared data
expdir=exp/stsb    # for vectors and results
options "$@"

if stage 0 "get data" ${pairs_dir:-local/stsb.sha256} : $datadir/local/sts-{dev,test}.csv; then
  python3 local/get_pairs.py stsb $datadir/local $url "$pairs_dir"
fi

if stage 1 "prepare pairs" $datadir/local/sts-{dev,test}.csv \
  : $datadir/{dev,test}/pairs.tsv $datadir/sentences.txt; then
  python3 local/prepare_pairs.py stsb $datadir \
    dev=$datadir/local/sts-dev.csv test=$datadir/local/sts-test.csv
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
