#!/usr/bin/env bash
# LibriSpeech: train language models on text, rescore N-best lists of speech with them, and compare.
#
# --corpus mini (the default) needs no network: Bible verses spoken by synthetic voices, decoded by
# a real recogniser. Nor does --corpus mini-real: LibriSpeech's speech, decoded by Whisper, and ten
# novels as LM text. --corpus full fetches LibriSpeech's text and transcripts, and takes the N-best
# lists of your recogniser from --nbest-dir, or has --asr make them. --corpus swbd reads
# Switchboard's transcriptions (and Fisher's) from --ldc-dir, lists and references from --nbest-dir.
# --corpus lists trains nothing: it rescores the lists in --nbest-dir with the LMs in --lm-dirs.
# local/sampling.sh compares the training criteria of word LMs by this recipe.

# shellcheck disable=SC2034  # local/corpora reads options
cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=mini        # mini, mini-real, full, swbd or lists
mini=mini          # directory of the mini corpus: train.txt valid.txt dev.nbest.jsonl
                   # test.nbest.jsonl, plain, .gz or .xz; your own in this form will do as well
nbest_dir=         # N-best lists of your recogniser, DIR/SET for each set, a file (with any suffix)
                   # or a directory; minis have theirs; swbd: for dev and test, and their references,
                   # Kaldi text, in DIR/SET.text; lists: for dev and any other sets, references in
                   # the lists or as for swbd
ldc_dir=           # swbd: LDC97S62's transcriptions and, if you have them, Fisher's: directories
                   # with spaces between them
test_parts="swb=sw ch=en" # swbd: parts of test that are sets too, NAME=BEGINNING of their utterance ids,
                   # as in Hub5'00; none: no parts
nbest_format=jsonl # their format, one that lmtools convert knows
asr=               # whisper:DIR or vosk:DIR, a recogniser (utils/install_asr.sh) that makes the lists
audio=             # of these recordings: DIR/SET for each set, as LibriSpeech has them or with
                   # Kaldi's wav.scp and text; empty: with --corpus full, LibriSpeech's are fetched
asr_opts=          # its key=value options, as in "beam=10 depth=10"; lmtools decode --help lists them
lattice_dir=       # lattices of your recogniser, DIR/SET for each set, a file or a directory; mini
                   # has its own; none: no lattices
lattice_format=slf # their format, as in kaldi:words=data/lang/words.txt
lattice_case=      # upper or lower: make their words so, as the references are; mini: upper
openslr=https://www.openslr.org/resources # full: where to fetch; mirrors:
                   # https://us.openslr.org/resources and others
depth=             # hypotheses an utterance; empty: 20 for minis, 50 for the others
normaliser=librispeech # of text and hypotheses: librispeech (lower case, no punctuation), cased or
                   # none; flags that lmtools subword knows may follow, as in
                   # "librispeech --apostrophe strip"
lm_unit=subword    # what LMs predict: subword or word
subword=bpe        # bpe, unigram, word or char; --lm-unit word: word
vocab_size=        # ids of the subword model; empty: 2000 for minis, 30000 for the others; --lm-unit
                   # word: what occurs twice in a mini's text (what occurs once trains <unk>), 200000
                   # for full, 30000 for swbd
shard_size=        # bytes of text of a shard of the LMs' training corpus, as in 500M; training holds
                   # one shard, several processes write them; empty: one file
conf=              # directory with a YAML file for each neural LM; empty: conf for minis (--lm-unit
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
mbr=none           # utility of minimum Bayes risk, which needs no LM, a column mbr: wer or another
                   # that lmtools mbr knows, whose options may follow; none: no such system
folds=             # tune on all sets together, and choose for each utterance by weights tuned
                   # without its fold: N folds at random, speaker or speaker:N; empty: tune on dev
objective=expected # what tuning of lists minimises: expected or exact, see lmtools tune
combinations=      # other combinations than its own, as in "tta+ngram all"; none: each LM alone
unnormalised=      # LMs to score without their normalisation too: systems NAME-unnormalised and,
                   # where NAME+ngram is one, with the n-gram
lattice_systems="ngram tta+ngram" # LMs, or combinations of them, to rescore lattices with
lattice_opts="--tokens 8 --cover-beam 60 --exact 20 --nj 2" # options of lmtools lattice rescore
order=             # of the n-gram; empty: 5 for full, as in the T-TA paper, 4 for the others, as in
                   # the paper on Switchboard; on mini's 0.85 million words 5 is level on test
                   # and 1.6 times as large
mixtures=          # --lm-unit word: LMs, as lstm, whose linear interpolation with the n-gram has its
                   # perplexity measured, weights tuned on valid; the n-gram then has their
                   # vocabulary, else its own; empty: LSTMs and Transformers (causal) for swbd; none
train_opts=        # key=value settings over the YAML files, as in steps=100; empty: for
                   # mini-real steps=2200
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
  one_of corpus mini mini-real full swbd lists
  one_of lm_unit subword word
  one_of objective expected exact
  raw=$datadir/local/$corpus texts=(train valid)
  if [[ $asr ]]; then
    [[ ! $nbest_dir ]] || wrong "--asr makes the lists that --nbest-dir has; give one of them"
    nbest_dir=$datadir/asr lattice_dir=${lattice_dir:-none}
  fi
  [[ -e local/corpora/$corpus.sh ]] || corpus=mini # under --help
  # shellcheck source=local/corpora/mini.sh
  . "local/corpora/$corpus.sh"
  [[ $nbest_dir ]] || wrong "--corpus $corpus rescores N-best lists of your recogniser; name their\
 directory with --nbest-dir, or a recogniser with --asr"
  [[ ${asr:+1} = "${audio:+1}" ]] || wrong "--asr decodes --audio; give both"
  if [[ $lm_unit = word ]]; then
    subword=word conf=${conf:-$word_conf} vocab_size=${vocab_size:-$word_size}
  else
    : "${conf:=$lm_conf}" "${vocab_size:=$lm_size}"
  fi
  : "${systems:=conf/$([[ $paper = true ]] && echo paper || echo systems).yaml}"
  [[ $paper = true || ! $bert ]] || wrong "--bert is a row of --paper true; give both"
  sanlm=() # LMs over words beside the others
  if [[ $paper = true ]]; then
    add_bert "$bert"
    [[ $intact ]] || for name in masked bert; do
      ! named "$name" || intact+=" $name"
    done
    [[ $lm_unit = word ]] || sanlm=(causal masked)
  fi
  lattice_sets=()
  [[ ! $lattice_dir || $lattice_dir = none || ! $lattice_systems || $folds ]] ||
    lattice_sets=("${sets[@]}")
  [[ ! $folds ]] || sets=(all "${sets[@]}")
  tests=("${sets[@]:1}") # the first is tuned on
}
options "$@"

# shellcheck disable=SC2086
language_models "$expdir/lm" $lms $lm_dirs \
  ${sanlm[0]:+"unisanlm=$expdir/word/lm/causal" "bisanlm=$expdir/word/lm/masked"}
read -ra passes <<<"$intact"
tuned=("${names[@]}" "${passes[@]/%/-intact}") # columns that `lms` of the systems are
others=() bench=() # columns of scores of no LM; options of lmtools bench
[[ $mbr = none ]] || others=(mbr)
read -ra utility <<<"--utility $mbr"
# shellcheck disable=SC2086
add_columns unnormalised "--normalise none" $unnormalised
add_columns intact --intact "${passes[@]}"
read -ra normal <<<"--normaliser $normaliser"
read -ra settings <<<"$train_opts"
read -ra decoding <<<"$lattice_opts ${oov_penalty:+--oov-penalty $oov_penalty}"
[[ $cmd = local ]] || decoding+=(--nj "$nj")
tokens=("${normal[@]}") mixed=() # of the n-gram; LMs to interpolate with it
[[ $lm_unit = subword || ! ${lm[ngram]-} || $mixtures = none ]] || read -ra mixed <<<"$mixtures"
need_lms mixtures "${mixed[@]}"
((${#mixed[@]} == 0)) || tokens=(--subword "$expdir/subword" --unk)

if stage 0 "get data" "$source" : "$raw"; then
  get_corpus
fi

if stage 1 "prepare text, N-best and lattices" "$raw" "${audio:-$nbest_dir}" \
  ${asr:+"${asr#*:}" conf/titles.txt} \
  : "$datadir/{texts}/text" "$datadir/{sets}/text" "$datadir/{sets}/nbest.jsonl" \
  "$datadir/{lattice_sets}/lattices"; then
  python3 local/prepare.py "$corpus" "$raw" "$datadir"
  for set in "${decoded[@]}"; do
    # shellcheck disable=SC2086
    [[ ! $asr ]] || lmtools decode --asr "$asr" --audio "$audio/$set" --nj "$nj" \
      ${asr_opts:+--opts $asr_opts} --out "$nbest_dir/$set.jsonl"
    lists=$(find_lists "$nbest_dir" "$set")
    [[ -e $raw/$set.text ]] || python3 ../../utils/references.py "$lists" "$datadir/$set/text"
    lmtools convert "$lists" "$datadir/$set/nbest.jsonl" --format "$nbest_format" --to jsonl \
      --ref "$datadir/$set/text" --depth "$depth" \
      ${asr:+--drop-marks --dedup "${normal[@]}" --map-words conf/titles.txt}
    ((${#lattice_sets[@]})) || continue
    lists=$(find_lists "$lattice_dir" "$set")
    rm -rf "$datadir/$set/lattices"
    lmtools convert "$lists" "$datadir/$set/lattices" --format "$lattice_format" --to slf \
      ${lattice_case:+--case "$lattice_case"}
  done
  finish_sets
  [[ ! $folds ]] || local/join.sh "$datadir/all" "${decoded[@]/#/$datadir/}"
fi

models=(${texts[0]:+"$expdir/subword"} ${sanlm[0]:+"$expdir/word/subword"})
if stage 2 "subword and binarise" "$datadir/{texts}/text" \
  : "{models}" "$expdir/{texts}.bin"; then
  ((${#texts[@]} == 0)) ||
    binarise "$datadir"/{train,valid}/text "$expdir" "$subword" "$vocab_size" "${normal[@]}"
  ((${#sanlm[@]} == 0)) ||
    binarise "$datadir"/{train,valid}/text "$expdir/word" word "$word_size" "${normal[@]}"
fi

if stage 3 "train LMs" "$datadir/{texts}/text" "{models}" "$expdir/{texts}.bin" \
  "$conf" conf ../../conf \
  : "$expdir/lm/{ngrams}/config.yaml" "$expdir/lm/{neural}/model.safetensors" \
  "$expdir/word/lm/{sanlm}"; then
  ((${#ngrams[@]} == 0)) || submit lmtools ngram --text "$datadir/train/text" --order "$order" \
    "${tokens[@]}" --out "$expdir/lm/ngram"
  train_lms "$conf" "$expdir" "${neural[@]}"
  ((${#sanlm[@]} == 0)) || train_lms "$word_conf" "$expdir/word" "${sanlm[@]}"
fi

valid=("${texts[@]:1}")
if stage 4 "score" "$expdir/lm/{ngrams}/config.yaml" "$expdir/lm/{neural}/model.safetensors" \
  "${given[@]}" "$datadir/{valid}/text" "$datadir/{sets}/text" "$datadir/{sets}/nbest.jsonl" \
  : "$expdir/score"/{"{columns}","{others}"}/"{sets}.scores" "$expdir/ppl/{names}/{valid}.json" \
  "$expdir/ppl/{names}/{tests}.json" "$expdir/ppl/{mixed}+ngram/{tests}.json"; then
  for name in "${names[@]}"; do
    with=(--lm "${lm[$name]}" --precision "$precision" --cache "$expdir/cache")
    [[ ! ${valid-} ]] ||
      quoted "${with[@]}" --text "$datadir/valid/text" --out "$expdir/ppl/$name/valid.json"
    for set in "${tests[@]}"; do
      quoted "${with[@]}" --kaldi --text "$datadir/$set/text" --out "$expdir/ppl/$name/$set.json"
    done
  done | each 1 lmtools ppl
  for name in "${columns[@]}"; do
    penalty=$oov_penalty
    [[ $penalty || $name != @(uni|bi)sanlm* ]] ||
      penalty=$(awk '/ items:/ {print log($2)}' "$expdir/word/subword/subword.yaml")
    for set in "${sets[@]}"; do
      # shellcheck disable=SC2086
      lmtools score --lm "${lm[$name]}" ${how[$name]-} ${penalty:+--oov-penalty "$penalty"} \
        --precision "$precision" --nj "$nj" --cache "$expdir/cache" \
        --nbest "$datadir/$set/nbest.jsonl" --out "$expdir/score/$name/$set.scores"
    done
  done
  [[ $mbr = none ]] || for set in "${sets[@]}"; do
    lmtools mbr --nbest "$datadir/$set/nbest.jsonl" "${utility[@]}" \
      --out "$expdir/score/mbr/$set.scores"
  done
  for name in "${mixed[@]}"; do
    for set in "${tests[@]}"; do
      lmtools ppl --lm "${lm[$name]}" --lm "${lm[ngram]}" --tune-on "$datadir/valid/text" --kaldi \
        --text "$datadir/$set/text" --precision "$precision" --out "$expdir/ppl/$name+ngram/$set.json"
    done
  done
fi

if stage 5 "tune on dev and rescore test" "$systems" "$datadir/{sets}/nbest.jsonl" \
  "$expdir/score"/{"{columns}","{others}"}/"{sets}.scores" "$datadir/{lattice_sets}/lattices" \
  "$expdir/lm/{ngrams}/config.yaml" "$expdir/lm/{neural}/model.safetensors" \
  : "$expdir"/{tune,rescore}; then
  with=(--systems "$systems" "lms=${tuned[*]}" "unnormalised=$unnormalised")
  with+=("others=${others[*]}" ${combinations:+"combinations=$combinations"})
  with+=(${first_pass:+"first_pass=$first_pass"})
  lmtools tune "${with[@]}" --nbest "$datadir/${sets[0]}/nbest.jsonl" --metric wer \
    --objective "$objective" ${folds:+--folds "$folds"} \
    --scores "$expdir/score/{lm}/${sets[0]}.scores" \
    --out "$expdir/tune/{system}/weights.json"
  for set in "${sets[@]}"; do
    lmtools rescore "${with[@]}" --nbest "$datadir/$set/nbest.jsonl" \
      --scores "$expdir/score/{lm}/$set.scores" --weights "$expdir/tune/{system}/weights.json" \
      --out "$expdir/rescore/{system}/$set.txt"
  done
  ((${#lattice_sets[@]} == 0)) || for system in $lattice_systems; do
    with=()
    for name in $(lms_of "$system"); do
      # shellcheck disable=SC2206
      with+=(--lm "$name=${lm[$name]}" ${how[$name]-})
    done
    ((${#with[@]} == 0)) || local/rescore_lattices.sh "$system" "$datadir" "$expdir" "${sets[*]}" \
      --precision "$precision" "${decoding[@]}" "${with[@]}"
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
