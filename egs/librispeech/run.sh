#!/usr/bin/env bash
# LibriSpeech: train language models on text, rescore N-best lists of speech with them, and compare.
#
# --corpus mini (the default) needs no network: Bible verses spoken by synthetic voices, decoded by a real recogniser.
# --corpus full fetches LibriSpeech's text and transcripts, and takes the N-best lists of your recogniser from --nbest-dir.
# --corpus swbd reads Switchboard's transcriptions (and Fisher's) from --ldc-dir, lists and references from --nbest-dir.
# local/sampling.sh compares the training criteria of word LMs by this recipe.

cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=mini        # mini, full or swbd
mini=mini          # directory of the mini corpus: train.txt valid.txt dev.nbest.jsonl test.nbest.jsonl, plain, .gz or .xz;
                   # your own corpus in this form will do as well
nbest_dir=         # N-best lists of your recogniser, DIR/SET for each set, a file (with any suffix) or a directory; mini has its own;
                   # swbd: for dev and test, and their references, Kaldi text, in DIR/SET.text
ldc_dir=           # swbd: LDC97S62's transcriptions and, if you have them, Fisher's: directories with spaces between them
nbest_format=jsonl # their format, one that lmtools convert knows
lattice_dir=       # lattices of your recogniser, DIR/SET for each set, a file or a directory; mini has its own; none: no lattices
lattice_format=slf # their format, as in kaldi:words=data/lang/words.txt
lattice_case=      # upper or lower: make their words so, as the references are; mini: upper
openslr=https://www.openslr.org/resources # full: where to fetch; mirrors: https://us.openslr.org/resources and others
depth=             # hypotheses an utterance; empty: 20 for mini, 50 for the others
normaliser=librispeech # of text and hypotheses: librispeech (lower case, no punctuation), cased or none; flags that
                   # lmtools subword knows may follow, as in "librispeech --apostrophe strip"
lm_unit=subword    # what LMs predict: subword or word
subword=bpe        # bpe, unigram, word or char; --lm-unit word: word
vocab_size=        # ids of the subword model; empty: 2000 for mini, 30000 for the others; --lm-unit word: what occurs twice in mini's
                   # text (what occurs once trains <unk>), 200000 for full, 30000 for swbd
conf=              # directory with a YAML file for each neural LM; empty: conf for mini (--lm-unit word: conf/word), else ../../conf
lms="ngram causal masked tta" # LMs to train: ngram, and names of YAML files in conf
lm_dirs=           # LMs that are there already, NAME=DIR each, as in bert=hf:DIR
combinations="tta+ngram causal+ngram masked+ngram all" # LMs to combine, beside each alone; all: every LM
unnormalised=      # LMs to score without their normalisation too: systems NAME-unnormalised and, where NAME+ngram is one, with the n-gram
lattice_systems="ngram causal tta+ngram" # LMs, or combinations of them, to rescore the lattices with
lattice_opts="--tokens 8 --cover-beam 60 --exact 20 --nj 2" # options of lmtools lattice rescore
order=4            # of the n-gram
train_opts=        # key=value settings over the YAML files, as in steps=100
oov_penalty=       # nats that an unknown word of a hypothesis costs beyond <unk>, which stands for all of them; not in perplexities
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
nj=3               # processes that train and score at a time, as many as there are neural LMs; 1 with a GPU
timed=none         # neural LMs whose run time by length is measured: names, all or none
datadir=data       # for prepared data
expdir=exp         # for models, scores and results
options "$@"

[[ $corpus = @(mini|full|swbd) ]] || wrong "--corpus is '$corpus'; it takes mini, full or swbd"
[[ $lm_unit = @(subword|word) ]] || wrong "--lm-unit is '$lm_unit'; it takes subword or word"
[[ $corpus = mini || $nbest_dir ]] ||
  wrong "--corpus $corpus rescores N-best lists of your recogniser; name their directory with --nbest-dir"
[[ $corpus != swbd || $ldc_dir ]] || wrong "--corpus swbd reads the LDC's transcriptions; name their directory with --ldc-dir"

. local/plan.sh # what the stages read and write, from these options

if stage 0 "get data" "$source" : "$raw"; then
  "${get[@]}"
fi

if stage 1 "prepare text, N-best and lattices" "$raw" "$nbest_dir" : "${texts[@]}" "${nbests[@]}" "${lattices[@]}"; then
  python3 local/prepare.py "$corpus" "$raw" "$datadir"
  local/nbest.sh "$nbest_dir" "$nbest_format" "$depth" "$datadir" "${lists[@]}"
  ((${#lattices[@]} == 0)) || local/lattices.sh "$lattice_dir" "$lattice_format" "$lattice_case" "$datadir" "${lists[@]}"
fi

if stage 2 "subword and binarise" "$datadir"/{train,valid}/text : "$expdir/subword" "$expdir"/{train,valid}.bin; then
  lmtools subword --text "$datadir/train/text" "${vocabulary[@]}" "${normal[@]}" --out "$expdir/subword"
  lmtools corpus --text "$datadir/train/text" --subword "$expdir/subword" --out "$expdir/train.bin"
  lmtools corpus --text "$datadir/valid/text" --subword "$expdir/subword" --out "$expdir/valid.bin"
fi

if stage 3 "train LMs" "$datadir/train/text" "$expdir/subword" "$expdir"/{train,valid}.bin "${confs[@]}" : "${trained[@]}"; then
  [[ " $lms " != *" ngram "* ]] || lmtools ngram --text "$datadir/train/text" --order "$order" "${normal[@]}" --out "${lm[ngram]}"
  printf '%s\n' "${neural[@]}" | OMP_NUM_THREADS=$threads xargs -r -P "$nj" -I NAME lmtools train --conf "$conf/NAME.yaml" \
    --train "$expdir/train.bin" --valid "$expdir/valid.bin" --out "$expdir/lm/NAME" "${settings[@]}"
fi

if stage 4 "score" "${trained[@]}" "${given[@]}" "${nbests[@]}" "${texts[@]:1}" : "${scores[@]}" "${ppls[@]}"; then
  for name in "${names[@]}"; do
    with=(--lm "${lm[$name]}" --precision "$precision" --nj "$nj" --cache "$expdir/cache")
    lmtools ppl "${with[@]}" --text "$datadir/valid/text" --out "$expdir/ppl/$name/valid.json"
    for set in "${sets[@]}"; do
      with_lists=("${with[@]}" "${oov[@]}" --nbest "$datadir/$set/nbest.jsonl" --out)
      lmtools score "${with_lists[@]}" "$expdir/score/$name/$set.scores"
      [[ " $unnormalised " != *" $name "* ]] ||
        lmtools score "${with_lists[@]}" "$expdir/score/$name-unnormalised/$set.scores" --normalise none
      [[ $set = dev ]] || lmtools ppl "${with[@]}" --kaldi --text "$datadir/$set/text" --out "$expdir/ppl/$name/$set.json"
    done
  done
fi

if stage 5 "tune on dev and rescore test" "${nbests[@]}" "${scores[@]}" "${trained[@]}" "${lattices[@]}" : "${weights[@]}" "${rescored[@]}"; then
  for system in "${systems[@]}"; do
    for set in "${sets[@]}"; do
      columns=()
      for name in $(lms_of "$system" "${names[@]}"); do
        columns+=(--scores "$name=$expdir/score/$name/$set.scores")
      done
      what=(--nbest "$datadir/$set/nbest.jsonl" "${columns[@]}")
      [[ $set != dev ]] || lmtools tune "${what[@]}" --metric wer --out "$expdir/tune/$system/weights.json"
      lmtools rescore "${what[@]}" --weights "$expdir/tune/$system/weights.json" --out "$expdir/rescore/$system/$set.txt"
    done
  done
  for system in "${lattice_names[@]}"; do
    what=() how="--precision $precision $lattice_opts ${oov[*]}"
    [[ $system != *-unnormalised* ]] || how+=" --normalise none"
    for name in $(lms_of "$system" "${names[@]}"); do
      what+=("$name=${lm[$name]}")
    done
    local/rescore_lattices.sh "$system" "$datadir" "$expdir" "$how" "${what[@]}" : "${sets[@]}"
  done
fi

if stage 6 "report" "${nbests[@]}" "${trained[@]}" "${weights[@]}" "${rescored[@]}" : "$expdir"/report/{RESULTS.md,index.html}; then
  ((${#bench[@]} == 0)) || lmtools bench score "${bench[@]}" --out "$expdir/bench/speed.json"
  lmtools report "$expdir" --nbest "${nbests[@]}" --title "${PWD##*/} ($corpus)"
fi
