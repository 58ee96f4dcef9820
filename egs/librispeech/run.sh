#!/usr/bin/env bash
# LibriSpeech: train language models on text, rescore N-best lists of speech with them, and compare.
#
# --corpus mini (the default) needs no network: Bible verses spoken by synthetic voices, decoded by
# a real recogniser. --corpus full fetches LibriSpeech's text and transcripts, and takes the N-best
# lists of your recogniser from --nbest-dir. --corpus swbd reads Switchboard's transcriptions (and
# Fisher's) from --ldc-dir, lists and references from --nbest-dir. local/sampling.sh compares the
# training criteria of word LMs by this recipe.

cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=mini        # mini, full or swbd
mini=mini          # directory of the mini corpus: train.txt valid.txt dev.nbest.jsonl
                   # test.nbest.jsonl, plain, .gz or .xz; your own in this form will do as well
nbest_dir=         # N-best lists of your recogniser, DIR/SET for each set, a file (with any suffix)
                   # or a directory; mini has its own; swbd: for dev and test, and their references,
                   # Kaldi text, in DIR/SET.text
ldc_dir=           # swbd: LDC97S62's transcriptions and, if you have them, Fisher's: directories
                   # with spaces between them
test_parts="swb=sw ch=en" # swbd: parts of test that are sets too, NAME=BEGINNING of their utterance ids,
                   # as in Hub5'00; none: no parts
nbest_format=jsonl # their format, one that lmtools convert knows
lattice_dir=       # lattices of your recogniser, DIR/SET for each set, a file or a directory; mini
                   # has its own; none: no lattices
lattice_format=slf # their format, as in kaldi:words=data/lang/words.txt
lattice_case=      # upper or lower: make their words so, as the references are; mini: upper
openslr=https://www.openslr.org/resources # full: where to fetch; mirrors:
                   # https://us.openslr.org/resources and others
depth=             # hypotheses an utterance; empty: 20 for mini, 50 for the others
normaliser=librispeech # of text and hypotheses: librispeech (lower case, no punctuation), cased or
                   # none; flags that lmtools subword knows may follow, as in
                   # "librispeech --apostrophe strip"
lm_unit=subword    # what LMs predict: subword or word
subword=bpe        # bpe, unigram, word or char; --lm-unit word: word
vocab_size=        # ids of the subword model; empty: 2000 for mini, 30000 for the others; --lm-unit
                   # word: what occurs twice in mini's text (what occurs once trains <unk>), 200000
                   # for full, 30000 for swbd
conf=              # directory with a YAML file for each neural LM; empty: conf for mini (--lm-unit
                   # word: conf/word), else ../../conf
lms="ngram causal masked tta" # LMs to train: ngram, and names of YAML files in conf
lm_dirs=           # LMs that are there already, NAME=DIR each, as in bert=hf:DIR
paper=false        # true: the rows of the T-TA paper's Table 1 too: bert; unisanlm and bisanlm, causal
                   # and masked over words, in EXPDIR/word; --intact; and, as conf/paper.yaml says,
                   # sum and mean of each LM, free weights and (1 - lambda) first pass + lambda LM
bert=              # with --paper: directory of a BERT of Hugging Face; empty: a small one is trained,
                   # as bert.yaml in conf says
intact=            # masked LMs to score in one pass over the intact input too: systems NAME-intact;
                   # empty: with --paper masked and bert
systems=           # which LMs are combined; empty: conf/systems.yaml, with --paper conf/paper.yaml
first_pass=        # for --paper: the first pass's score, NAME=W of scores and lengths of the lists,
                   # as in "am=0.1 lm=1"; empty: its decoder's for mini, else the lists' total, score
                   # or only score
combinations=      # other combinations than its own, as in "tta+ngram all"; none: each LM alone
unnormalised=      # LMs to score without their normalisation too: systems NAME-unnormalised and,
                   # where NAME+ngram is one, with the n-gram
lattice_systems="ngram causal tta+ngram" # LMs, or combinations of them, to rescore lattices with
lattice_opts="--tokens 8 --cover-beam 60 --exact 20 --nj 2" # options of lmtools lattice rescore
order=             # of the n-gram; empty: 5 for full, as in the T-TA paper, 4 for the others, as in
                   # the paper on Switchboard; on mini's 0.85 million words 5 is 0.15 better on test
                   # (p 0.08) and 1.6 times as large
mixtures=          # --lm-unit word: LMs, as lstm, whose linear interpolation with the n-gram has its
                   # perplexity measured, weights tuned on valid; the n-gram then has their
                   # vocabulary, else its own; empty: LSTMs and Transformers (causal) for swbd; none
train_opts=        # key=value settings over the YAML files, as in steps=100
oov_penalty=       # nats that an unknown word of a hypothesis costs beyond <unk>, which stands for
                   # all of them; not in perplexities; empty: none, but for unisanlm and bisanlm the
                   # log of how many words their vocabulary leaves out
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
nj=3               # processes that train and score at a time, as many as there are neural LMs; 1
                   # with a GPU
timed=none         # neural LMs whose run time by length is measured: names, all or none
datadir=data       # for prepared data
expdir=exp         # for models, scores and results
defaults() {
  [[ $corpus = @(mini|full|swbd) ]] || wrong "--corpus is '$corpus'; it takes mini, full or swbd"
  [[ $lm_unit = @(subword|word) ]] || wrong "--lm-unit is '$lm_unit'; it takes subword or word"
  [[ $corpus = mini || $nbest_dir ]] ||
    wrong "--corpus $corpus rescores N-best lists of your recogniser; name their directory with\
 --nbest-dir"
  [[ $corpus != swbd || $ldc_dir ]] ||
    wrong "--corpus swbd reads the LDC's transcriptions; name their directory with --ldc-dir"
  raw=$datadir/local/$corpus tests=(test) decoded=(dev test)
  case $corpus-$lm_unit in
    mini-subword) source=$mini vocab_size=${vocab_size:-2000} conf=${conf:-conf} ;;
    mini-word) source=$mini conf=${conf:-conf/word} ;;
    full-word) source=local/full.sha256 vocab_size=${vocab_size:-200000} ;;
    full-*) source=local/full.sha256 ;;
    *) source=$nbest_dir ;;
  esac
  if [[ $corpus = mini ]]; then
    : "${depth:=20}" "${nbest_dir:=$raw}"
    if [[ ! $lattice_dir && -e $mini/dev.lattices.tar.xz && -e $mini/test.lattices.tar.xz ]]; then
      lattice_dir=$raw/lattices lattice_case=upper
    fi
  else
    : "${depth:=50}" "${conf:=../../conf}" "${vocab_size:=30000}"
  fi
  if [[ $corpus = swbd && $test_parts != none ]]; then
    for part in $test_parts; do
      [[ $part = [!=]*=?* && $part != @(dev|test|train|valid)=* ]] ||
        wrong "--test-parts has '$part'; it takes NAME=BEGINNING, as in swb=sw"
      tests+=("${part%%=*}")
    done
  fi
  [[ $corpus != full ]] || tests=({dev,test}-{clean,other}) decoded=("${tests[@]}")
  [[ $lm_unit = subword ]] || subword=word
  min_count=$([[ $vocab_size ]] || echo 2)
  : "${order:=$([[ $corpus = full ]] && echo 5 || echo 4)}"
  : "${systems:=conf/$([[ $paper = true ]] && echo paper || echo systems).yaml}"
  # pocketsphinx's am + 9.5 lm - 0.63 words (mini/README.md), its own LM at weight 1
  [[ $corpus-$mini != mini-mini ]] || : "${first_pass:=am=0.10526 lm=1 words=-0.06627}"
  [[ $paper = true || ! $bert ]] || wrong "--bert is a row of --paper true; give both"
  sanlm=() # LMs over words beside the others
  if [[ $paper = true ]]; then
    add_bert "$bert"
    [[ $intact ]] || for name in masked bert; do
      ! named "$name" || intact+=" $name"
    done
    [[ $lm_unit = word ]] || sanlm=("$expdir"/word/lm/{causal,masked})
  fi
  sets=(dev "${tests[@]}") lattice_sets=()
  [[ ! $lattice_dir || $lattice_dir = none || ! $lattice_systems ]] || lattice_sets=("${sets[@]}")
}
options "$@"

# shellcheck disable=SC2086
language_models "$expdir/lm" $lms $lm_dirs \
  ${sanlm[0]:+"unisanlm=${sanlm[0]}" "bisanlm=${sanlm[1]}"}
columns=("${names[@]}") bench=() # columns of scores; options of lmtools bench
for name in $unnormalised; do
  [[ ${lm[$name]-} ]] || wrong "--unnormalised names $name, which is none of the LMs"
  lm[$name-unnormalised]=${lm[$name]-} columns+=("$name-unnormalised")
done
tuned=("${names[@]}") # columns that `lms` of the systems are
for name in $intact; do
  [[ ${lm[$name]-} ]] || wrong "--intact names $name, which is none of the LMs"
  tuned+=("$name-intact") columns+=("$name-intact")
done
read -ra normal <<<"--normaliser $normaliser"
tokens=("${normal[@]}") mixed=() # of the n-gram; LMs to interpolate with it
if [[ $lm_unit = word && ${lm[ngram]-} && $mixtures != none ]]; then
  for name in ${mixtures:-${neural[*]}}; do
    [[ ${lm[$name]-} ]] || wrong "--mixtures names $name, which is none of the LMs"
    [[ ! $mixtures && ($corpus != swbd || $name != @(lstm|causal)*) ]] || mixed+=("$name")
  done
fi
((${#mixed[@]} == 0)) || tokens=(--subword "$expdir/subword" --unk)
read -ra settings <<<"$train_opts"
read -ra transcriptions <<<"$ldc_dir"
read -ra decoding <<<"$lattice_opts ${oov_penalty:+--oov-penalty $oov_penalty}"
threads=$(($(nproc) / nj > 1 ? $(nproc) / nj : 1))

if stage 0 "get data" "$source" : "$raw"; then
  case $corpus in
    mini)
      python3 ../../utils/unpack.py "$mini" "$raw" {train,valid}.txt {dev,test}.nbest.jsonl \
        {dev,test}.lattices.tar.xz
      ;;
    full) local/get_full.sh "$raw" "$openslr" ;;
    swbd) python3 local/get_swbd.py "$raw" "$nbest_dir" "${transcriptions[@]}" ;;
  esac
fi

if stage 1 "prepare text, N-best and lattices" "$raw" "$nbest_dir" \
  : "$datadir"/{train,valid}/text "$datadir/{sets}/text" "$datadir/{sets}/nbest.jsonl" \
  "$datadir/{lattice_sets}/lattices"; then
  python3 local/prepare.py "$corpus" "$raw" "$datadir"
  for set in "${decoded[@]}"; do
    lists=$(find_lists "$nbest_dir" "$set")
    [[ $corpus != mini ]] || python3 ../../utils/references.py "$lists" "$datadir/$set/text"
    lmtools convert "$lists" "$datadir/$set/nbest.jsonl" --format "$nbest_format" --to jsonl \
      --ref "$datadir/$set/text" --depth "$depth"
    ((${#lattice_sets[@]})) || continue
    lists=$(find_lists "$lattice_dir" "$set")
    rm -rf "$datadir/$set/lattices"
    lmtools convert "$lists" "$datadir/$set/lattices" --format "$lattice_format" --to slf \
      ${lattice_case:+--case "$lattice_case"}
  done
  [[ $corpus != full ]] || local/join.sh "$datadir"/dev-{clean,other} "$datadir/dev"
  [[ $corpus != swbd || $test_parts = none ]] || for part in $test_parts; do
    python3 local/split.py "$datadir/test" "$datadir/${part%%=*}" "${part#*=}"
  done
fi

if stage 2 "subword and binarise" "$datadir"/{train,valid}/text \
  : "$expdir/subword" "$expdir"/{train,valid}.bin; then
  lmtools subword --text "$datadir/train/text" --type "$subword" "${normal[@]}" \
    ${vocab_size:+--vocab-size "$vocab_size"} ${min_count:+--min-count "$min_count"} \
    --out "$expdir/subword"
  for set in train valid; do
    lmtools corpus --text "$datadir/$set/text" --subword "$expdir/subword" --out "$expdir/$set.bin"
  done
fi

if stage 3 "train LMs" "$datadir/train/text" "$expdir/subword" "$expdir"/{train,valid}.bin \
  "$conf" conf ../../conf \
  : "$expdir/lm/{ngrams}/config.yaml" "$expdir/lm/{neural}/model.safetensors" "${sanlm[@]}"; then
  ((${#ngrams[@]} == 0)) || lmtools ngram --text "$datadir/train/text" --order "$order" \
    "${tokens[@]}" --out "$expdir/lm/ngram"
  printf '%s\n' "${neural[@]}" | OMP_NUM_THREADS=$threads xargs -r -P "$nj" -I NAME \
    lmtools train --conf "$conf/NAME.yaml" --train "$expdir/train.bin" \
    --valid "$expdir/valid.bin" --out "$expdir/lm/NAME" "${settings[@]}"
  # 7: what this run waits for, or ends, holds its lock
  ((${#sanlm[@]} == 0)) || ./run.sh --lm-unit word --lms "causal masked" --expdir "$expdir/word" \
    --corpus "$corpus" --datadir "$datadir" --nbest-dir "$nbest_dir" --ldc-dir "$ldc_dir" \
    --normaliser "$normaliser" --train-opts "$train_opts" --nj "$nj" --stage 2 --stop-stage 3 7>&9
fi

if stage 4 "score" "$expdir/lm/{ngrams}/config.yaml" "$expdir/lm/{neural}/model.safetensors" \
  "${given[@]}" "$datadir/valid/text" "$datadir/{sets}/text" "$datadir/{sets}/nbest.jsonl" \
  : "$expdir/score/{columns}/{sets}.scores" "$expdir/ppl/{names}/valid.json" \
  "$expdir/ppl/{names}/{tests}.json" "$expdir/ppl/{mixed}+ngram/{tests}.json"; then
  for name in "${names[@]}"; do
    with=(--lm "${lm[$name]}" --precision "$precision" --nj "$nj" --cache "$expdir/cache")
    lmtools ppl "${with[@]}" --text "$datadir/valid/text" --out "$expdir/ppl/$name/valid.json"
    for set in "${tests[@]}"; do
      lmtools ppl "${with[@]}" --kaldi --text "$datadir/$set/text" \
        --out "$expdir/ppl/$name/$set.json"
    done
    penalty=$oov_penalty
    [[ $penalty || $name != @(uni|bi)sanlm ]] ||
      penalty=$(awk '/ items:/ {print log($2)}' "$expdir/word/subword/subword.yaml")
    with+=(${penalty:+--oov-penalty "$penalty"})
    for set in "${sets[@]}"; do
      lmtools score "${with[@]}" --nbest "$datadir/$set/nbest.jsonl" \
        --out "$expdir/score/$name/$set.scores"
      [[ " $unnormalised " != *" $name "* ]] || lmtools score "${with[@]}" --normalise none \
        --nbest "$datadir/$set/nbest.jsonl" --out "$expdir/score/$name-unnormalised/$set.scores"
      [[ " $intact " != *" $name "* ]] || lmtools score "${with[@]}" --intact \
        --nbest "$datadir/$set/nbest.jsonl" --out "$expdir/score/$name-intact/$set.scores"
    done
  done
  for name in "${mixed[@]}"; do
    for set in "${tests[@]}"; do
      lmtools ppl --lm "${lm[$name]}" --lm "${lm[ngram]}" --tune-on "$datadir/valid/text" --kaldi \
        --text "$datadir/$set/text" --precision "$precision" --out "$expdir/ppl/$name+ngram/$set.json"
    done
  done
fi

if stage 5 "tune on dev and rescore test" "$systems" "$datadir/{sets}/nbest.jsonl" \
  "$expdir/score/{columns}/{sets}.scores" "$datadir/{lattice_sets}/lattices" \
  "$expdir/lm/{ngrams}/config.yaml" "$expdir/lm/{neural}/model.safetensors" \
  : "$expdir"/{tune,rescore}; then
  with=(--systems "$systems" "lms=${tuned[*]}" "unnormalised=$unnormalised")
  with+=(${combinations:+"combinations=$combinations"} ${first_pass:+"first_pass=$first_pass"})
  lmtools tune "${with[@]}" --nbest "$datadir/dev/nbest.jsonl" --metric wer \
    --scores "$expdir/score/{lm}/dev.scores" --out "$expdir/tune/{system}/weights.json"
  for set in "${sets[@]}"; do
    lmtools rescore "${with[@]}" --nbest "$datadir/$set/nbest.jsonl" \
      --scores "$expdir/score/{lm}/$set.scores" --weights "$expdir/tune/{system}/weights.json" \
      --out "$expdir/rescore/{system}/$set.txt"
  done
  for system in $lattice_systems; do # weights by hand on dev's lattices, then those tuned on them
    parts=$(lms_of "$system")
    if [[ ! $parts || ${#lattice_sets[@]} = 0 ]]; then continue; fi
    with=("${decoding[@]}") weights=am=1
    [[ $system != *-unnormalised* ]] || with+=(--normalise none)
    for name in $parts; do
      with+=(--lm "$name=${lm[$name]}") weights+=,$name=$((10 / $(wc -w <<<"$parts")))
    done
    for set in "${sets[@]}"; do
      lmtools lattice rescore "$datadir/$set/lattices" --format slf --precision "$precision" \
        "${with[@]}" --weights "$weights" --depth 100 --ref "$datadir/$set/text" \
        --nbest-out "$expdir/lattice/$system/$set.jsonl" \
        --report "$expdir/lattice/$system/$set.json"
      weights=$expdir/tune/lattice-$system/weights.json
      [[ $set != dev ]] ||
        lmtools tune --nbest "$expdir/lattice/$system/dev.jsonl" --metric wer --out "$weights"
      lmtools rescore --nbest "$expdir/lattice/$system/$set.jsonl" --weights "$weights" \
        --out "$expdir/rescore/lattice-$system/$set.txt"
    done
  done
fi

if stage 6 "report" "$datadir/{sets}/nbest.jsonl" "$expdir"/{tune,rescore} \
  "$expdir/lm/{ngrams}/config.yaml" "$expdir/lm/{neural}/model.safetensors" conf/report.yaml \
  : "$expdir"/report/{RESULTS.md,index.html}; then
  timings bench "$timed"
  ((${#bench[@]} == 0)) || lmtools bench score "${bench[@]}" --out "$expdir/bench/speed.json"
  expand lists "$datadir/{sets}/nbest.jsonl"
  lmtools report "$expdir" --nbest "${lists[@]}" --conf conf/report.yaml \
    --title "${PWD##*/} ($corpus)"
fi
