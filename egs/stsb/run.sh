#!/usr/bin/env bash
# STS Benchmark: train language models on text, make vectors of sentences with them, and compare
# their cosines with people's judgements.
#
# --corpus mini (the default) needs no network: pairs of verses of two Bibles, whose similarity is
# constructed, not judged by people. --corpus stsb and --corpus sick fetch the STS Benchmark or
# SICK, or take their files from --pairs-dir. Nothing is trained on the pairs: LMs see the text in
# --lm-text or, unless you have one, that of the mini corpus, and those in --lm-dirs are taken as
# they are.

cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=mini        # mini, stsb or sick
mini=mini          # directory of the mini corpus: train.txt valid.txt dev.tsv test.tsv (left TAB
                   # right TAB similarity), plain, .gz or .xz; your own in this form will do as well
lm_text=           # text that LMs and word vectors are trained on: a directory with train.txt and
                   # valid.txt, plain, .gz or .xz; empty: the mini corpus's, for stsb and sick too,
                   # where it is far from the pairs: figures then say little about the models
pairs_dir=         # stsb, sick: where sts-dev.csv and sts-test.csv, or SICK_trial.txt and
                   # SICK_test_annotated.txt are (or SICK.txt, the release in one file, which has
                   # fewer pairs), plain, .gz or .xz; nothing is fetched then
stsb_url=http://ixa2.si.ehu.eus/stswiki/images/4/48 # where to fetch Stsbenchmark.tar.gz
sick_url=http://alt.qcri.org/semeval2014/task1/data/uploads # where to fetch sick_trial.zip and
                   # sick_test_annotated.zip
normaliser=librispeech # of the text, and of sentences for the LMs trained on it: librispeech (lower
                   # case, no punctuation), cased or none; flags that lmtools subword knows may
                   # follow
subword=bpe        # bpe, unigram, word or char: what the LMs trained here see
vocab_size=        # ids of the subword model; empty: 4000 for the mini corpus's text, 30000 for
                   # --lm-text
conf=              # directory with a YAML file for each LM; empty: conf for the mini corpus's text,
                   # ../wmt13/conf/full for --lm-text: the paper had the same LMs for both
lms="causal masked tta" # LMs to train: names of YAML files in conf
lm_dirs=           # LMs that are there already, NAME=DIR each, as in
                   # "tta512=../librispeech/exp/lm/tta bert=hf:DIR"
systems=auto       # ways to make vectors: NAME, mean over an LM's tokens; NAME-masked, each token
                   # masked in its turn; NAME-eos, the last state; NAME-cls, the first; NAME-max,
                   # maximum; NAME-boundaries, mean with [CLS] and [SEP]. auto: those that suit each
                   # LM (NAME-masked costs a pass a token: leave it out for a large model without a
                   # GPU)
paper=false        # true: what the T-TA paper's tables have and the default has not: BERT
bert=              # with --paper: directory of a BERT of Hugging Face; empty: a small one is trained,
                   # as bert.yaml in conf says
statics="words tfidf" # vectors without an LM: words, mean of word vectors; tfidf; or one of them
vectors=           # word vectors in GloVe's or word2vec's text form, plain, .gz or .xz; empty:
                   # trained here on the LMs' text
dim=100            # values of each word vector that is trained here
train_opts=        # key=value settings over the YAML files, as in steps=100
precision=auto     # of matrix products: auto, float32 or bfloat16
nj=3               # processes that train, embed and correlate at a time; 1 with a GPU
timed=none         # neural LMs whose run time by length is measured: names, all or none
datadir=data       # for prepared data
expdir=exp         # for models, vectors and results
defaults() {
  one_of corpus mini stsb sick
  [[ $corpus != mini || ! $pairs_dir ]] ||
    wrong "--corpus mini has pairs of its own; give others as --mini DIR, or another --corpus"
  [[ $paper = true || ! $bert ]] || wrong "--bert is a row of --paper true; give both"
  if [[ $paper = true ]]; then
    add_bert "$bert"
    systems+=" bert-cls"
  fi
  # shellcheck disable=SC2034  # {files} in stages
  case $corpus in
    stsb) source=${pairs_dir:-local/stsb.sha256} url=$stsb_url files=(sts-{dev,test}.csv) ;;
    sick)
      source=${pairs_dir:-local/sick.sha256} url=$sick_url files=(SICK_{trial,test_annotated}.txt)
      ;;
    *) source=$mini files=({dev,test}.tsv) ;;
  esac
  if [[ $lm_text ]]; then
    : "${vocab_size:=30000}" "${conf:=../wmt13/conf/full}"
  else
    : "${vocab_size:=4000}" "${conf:=conf}"
  fi
}
options "$@"

# shellcheck disable=SC2086
language_models "$expdir/lm" $lms $lm_dirs
raw=$datadir/local/$corpus bench=() made=() words=() embedded=() stored=()
if [[ " $statics " = *" words "* ]]; then # word vectors are trained here, or there already
  [[ $vectors ]] || made=(words.txt)
  words=("${vectors:-$expdir/words.txt}")
fi
declare -A how=() # options of lmtools embed for each way to make vectors
# shellcheck disable=SC2086
ways=$(python3 local/systems.py "$conf" "$systems $statics" "${words[0]-}" "$datadir/train.txt" \
  "$expdir/lm" $lms $lm_dirs) || [[ $recipe_help = true ]] || exit 2
while IFS=$'\t' read -r system options; do
  [[ ! $system ]] || { embedded+=("$system") && how[$system]=$options; }
done <<<"$ways"
read -ra settings <<<"$train_opts"
read -ra normal <<<"--normaliser $normaliser"

if stage 0 "get data" "$source" "${lm_text:-$mini}" : "$raw/{files}" "$raw"/{train,valid}.txt; then
  if [[ $corpus = mini ]]; then
    python3 ../../utils/unpack.py "$mini" "$raw" {dev,test}.tsv
  else
    python3 local/get_pairs.py "$corpus" "$raw" "$url" "$pairs_dir"
  fi
  python3 ../../utils/unpack.py "${lm_text:-$mini}" "$raw" {train,valid}.txt
  [[ $corpus = mini || $lm_text ]] || echo "warning: LMs see the mini corpus's text, not text like\
 $corpus; name yours with --lm-text" >&2
fi

if stage 1 "prepare text and pairs" "$raw/{files}" "$raw"/{train,valid}.txt \
  : "$datadir"/{train,valid,sentences}.txt "$datadir"/{dev,test}/pairs.tsv; then
  python3 local/prepare.py "$corpus" "$raw" "$datadir"
fi

if stage 2 "subword and binarise" "$datadir"/{train,valid}.txt \
  : "$expdir/subword" "$expdir"/{train,valid}.bin; then
  binarise "$datadir"/{train,valid}.txt "$expdir" "$subword" "$vocab_size" "${normal[@]}"
fi

if stage 3 "train LMs" "$datadir/train.txt" "$expdir"/{train,valid}.bin "$conf" conf ../../conf \
  : "$expdir/lm/{neural}/model.safetensors" "$expdir/{made}"; then
  ((${#made[@]} == 0)) || submit python3 local/word_vectors.py \
    --text "$datadir/train.txt" --dim "$dim" --out "$expdir/words.txt"
  train_lms "$conf" "$expdir" "${neural[@]}"
fi

if stage 4 "embed" "$datadir"/{train,sentences}.txt "$expdir/lm/{neural}/model.safetensors" \
  "${given[@]}" "${words[@]}" : "$expdir/embed/{embedded}.npz"; then
  for system in "${embedded[@]}"; do
    echo "${how[$system]} $(quoted --out "$expdir/embed/$system.npz")"
  done | each 1 lmtools embed \
    --text "$datadir/sentences.txt" --precision "$precision" --cache "$expdir/cache"
fi

if stage 5 "correlate" "$expdir/embed/{embedded}.npz" "$datadir"/{dev,test}/pairs.tsv \
  : "$expdir/sts/{embedded}"/{dev,test}.json; then
  expand stored "$expdir/embed/{embedded}.npz"
  for set in dev test; do
    lmtools sts --vectors "${stored[@]}" --pairs "$datadir/$set/pairs.tsv" \
      --out "$expdir/sts/{system}/$set.json"
  done
fi

if stage 6 "report" "$expdir/lm/{neural}/model.safetensors" \
  "$expdir/sts/{embedded}"/{dev,test}.json conf/report.yaml : \
  "$expdir"/report/{RESULTS.md,index.html}; then
  timings bench "$timed"
  ((${#bench[@]} == 0)) ||
    lmtools bench score --representation "${bench[@]}" --out "$expdir/bench/speed.json"
  lmtools report "$expdir" --conf conf/report.yaml --title "${PWD##*/} ($corpus)"
fi
