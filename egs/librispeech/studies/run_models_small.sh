#!/usr/bin/env bash
# An English 4-gram for users without text, in half a minute: CMU Sphinx's trigram of English, which
# comes with pocketsphinx, and a 4-gram of mini-real's ten novels, mixed in equal parts and pruned.
# The wheel is EXPDIR/dist/lmtools_models_small-*.whl; docs/models.md shows what it brings.
# utils/install_asr.sh runs the stages that make the wheel, and installs it.

# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

datadir=data/models-small # for what is fetched
expdir=exp/models-small   # for LMs, the chosen hypotheses, and dist with the wheel
threshold=5e-8            # drop n-grams without which perplexity rises by less than this share
options "$@"

if stage 1 "fetch CMU Sphinx's trigram" : $datadir/en-us.arpa; then
  python3 -m pip download --quiet --no-deps --dest $datadir/wheel pocketsphinx==5.1.1
  python3 -m zipfile -e $datadir/wheel/*.whl $datadir/wheel
  bash -c 'echo "$1  $0" | sha256sum --check --quiet' \
    $datadir/wheel/pocketsphinx/model/en-us/en-us.lm.bin \
    db21d0642286677699e6dbc859d2e5395570222361999387ce60f6e1d01995d6
  python3 ../../utils/sphinx_to_arpa.py $datadir/wheel/pocketsphinx/model/en-us/en-us.lm.bin \
    $datadir/en-us.arpa
fi

if stage 2 "4-gram" $datadir/en-us.arpa : $expdir/small; then
  lmtools ngram --text mini-real/train.txt.xz --order 4 --normaliser librispeech \
    --kenlm none --out $expdir/novels
  lmtools ngram mix $expdir/novels $datadir/en-us.arpa --mix 0.5 --kenlm none --out $expdir/mixture
  lmtools ngram prune $expdir/mixture --threshold $threshold --kenlm none --out $expdir/small
fi

if stage 3 "pack" $expdir/small : $expdir/dist; then
  python3 ../../utils/pack_models.py $expdir/dist studies/conf/models_small.md \
    mini-real/valid.txt.xz mini-real/train.txt.xz $datadir/en-us.arpa en-small=$expdir/small
fi

if stage 4 "rescore mini-real's lists" $expdir/small : $expdir/ocean; then
  for set in test ocean/test; do
    lmtools rescore --nbest mini-real/$set.nbest.jsonl.xz --lm small=$expdir/small \
      --weights default:whisper --out $expdir/${set/\//-}.txt
  done
  lmtools rescue --dev mini-real/ocean/dev.nbest.jsonl.xz --test mini-real/ocean/test.nbest.jsonl.xz \
    --lm small=$expdir/small --out $expdir/ocean
fi
