#!/usr/bin/env bash
# Recordings decoded to N-best lists by Whisper or Vosk, and rescored with LMs that run.sh or
# run_full.sh trained. utils/install_asr.sh fetches the recognisers.
#
#   studies/run_asr.sh --asr whisper:../../tools/asr/whisper-base --audio DIR
#
# Words of lists and references are as --normaliser writes them; what the recogniser wrote is
# `written` beside them, and so is what was chosen: exp/asr/rescore/SYSTEM/SET.txt.written.

# shellcheck disable=SC2086  # --asr-opts and --normaliser are words
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

asr=              # whisper:DIR or vosk:DIR
audio=            # recordings: DIR/SET for each set, FLAC or WAV files with text (Kaldi) or
                  # *.trans.txt, as LibriSpeech has them, or Kaldi's wav.scp and text
sets="dev test"   # sets to decode; weights are tuned on dev
asr_opts=         # key=value options of the recogniser, as in "beam=10 depth=10"; lmtools decode
                  # --help lists them
experiment=conf/experiment.yaml # which scores there are, what is combined, how it is tuned
lm_dir=exp/lm     # the LMs: DIR/ngram, DIR/causal ..
depth=50          # hypotheses an utterance
normaliser=librispeech # of hypotheses and references; flags that lmtools convert knows may follow
word_map=studies/conf/titles.txt # words to write in another way, as references do: mr mister
precision=auto    # of matrix products in scoring: auto, float32 or bfloat16
nj=2              # processes that decode and score at a time; 1 with a GPU
datadir=data/asr  # for lists
expdir=exp/asr    # for scores and results
options "$@"
[[ $asr && $audio ]] || wrong "--asr names a recogniser, --audio its recordings; give both"

if stage 1 "decode" "${asr#*:}" "$audio" "$word_map" : "$datadir"; then
  for set in $sets; do
    lmtools decode --asr "$asr" --audio "$audio/$set" ${asr_opts:+--opts $asr_opts} --nj "$nj" \
      --out "$datadir/local/$set.jsonl"
    python3 ../../utils/references.py "$datadir/local/$set.jsonl" "$datadir/$set/text"
    lmtools convert "$datadir/local/$set.jsonl" "$datadir/$set/nbest.jsonl" --format jsonl \
      --to jsonl --depth "$depth" --drop-marks --dedup --normaliser $normaliser \
      --map-words "$word_map"
  done
fi

if stage 4 "score" "$experiment" "$lm_dir" "$datadir/dev/nbest.jsonl" : "$expdir/score"; then
  score_sets "$experiment" "$lm_dir/{lm}" "$datadir" "$expdir" "$sets"
fi

if stage 5 "tune on dev, rescore all sets" "$experiment" "$datadir/dev/nbest.jsonl" \
  "$expdir/score" : "$expdir/tune" "$expdir/rescore"; then
  rescore_sets "$experiment" "$datadir" "$expdir" dev "$sets"
fi

if stage 6 "report" "$experiment" conf/report.yaml "$datadir"/*/nbest.jsonl "$expdir/tune" \
  "$expdir/rescore" : "$expdir"/report/{RESULTS.md,index.html}; then
  lmtools report "$expdir" --experiment "$experiment" --conf conf/report.yaml \
    --nbest "$datadir"/*/nbest.jsonl --title "${PWD##*/}, ${asr%%:*}"
  python3 ../../utils/papers/paper_tables.py "$expdir" conf/report.yaml conf/papers.yaml
fi
