#!/usr/bin/env bash
# WMT13, lists of another translator: translate the sources of run.sh's dev and test, or those of
# run_full.sh, for `./run.sh --pair PAIR-nmt --stage 4` to rescore with the LMs that are there.
#
# Starts from data/PAIR/{dev,test}/{source,text}. What was translated before a kill is kept.
# shellcheck disable=SC2086  # paths have no blanks

cd "$(dirname "$0")" && . ../../utils/recipe.sh

pair=de-en         # whose sources are translated; the lists are called PAIR-nmt
nmt=exp/de-en-translators/models/direct # a translator of lmtools train; or of Hugging Face, with
                   # --marian true
marian=false       # true: nmt is the directory of a Marian model, as opus-mt's
depth=20           # width of the beam search, and hypotheses a sentence
precision=auto     # of matrix products: auto, float32 or bfloat16
datadir=data       # of run.sh
expdir=exp         # of run.sh
options "$@"

if stage 1 "translate" $nmt $datadir/$pair/{dev,test}/{source,text} \
  : $datadir/$pair-nmt/{dev,test}/{nbest.jsonl,text,source}; then
  for set in dev test; do
    mkdir -p $datadir/$pair-nmt/$set
    cp $datadir/$pair/$set/{source,text} $datadir/$pair-nmt/$set
    if [[ $marian = true ]]; then
      submit python3 local/translate.py --model $nmt --source $datadir/$pair/$set/source \
        --reference $datadir/$pair/$set/text --beam $depth \
        --out $datadir/$pair-nmt/$set/nbest.jsonl
    else
      submit lmtools translate --lm $nmt --kaldi --source $datadir/$pair/$set/source \
        --ref $datadir/$pair/$set/text --beam $depth --precision $precision \
        --out $datadir/$pair-nmt/$set/nbest.jsonl
    fi
  done
fi
