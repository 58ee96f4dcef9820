#!/usr/bin/env bash
# One Billion Word and WikiText: train n-gram, LSTM, gated convolutional and two-way (ELMo, subword
# ELMo) language models on text, and compare their perplexities and what they cost.
#
# --corpus mini (the default) needs no network: the Bible text of egs/librispeech's mini corpus.
# --corpus gbw, wikitext103 and wikitext2 fetch the published corpora and prepare them as published;
# --corpus text --text-dir DIR takes a text of one's own.
# --grids "gates context" trains the runs of conf/grids/gates.yaml and context.yaml too.

cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=mini        # mini, text, gbw, wikitext103 or wikitext2
mini=../librispeech/mini # directory of the mini corpus: train.txt valid.txt, plain, .gz or .xz;
                   # your own in this form will do as well
text_dir=          # directory of text: train.txt valid.txt test.txt, plain, .gz or .xz
line=paragraph     # of wikitext103 and wikitext2: paragraph, or article for all under its title
url=               # where to fetch the corpus; empty: its public address
normaliser=none    # of text: none (as published), cased or librispeech (lower case, no
                   # punctuation); flags that lmtools subword knows may follow, as in
                   # "librispeech --apostrophe strip"
min_count=         # words seen less often are <unk>; empty: 3 for mini and gbw, 1 for wikitext103
                   # and wikitext2, whose text has <unk>
lms=               # LMs to train, NAME or NAME@VOCABULARY: knN, a Kneser-Ney N-gram, and names of
                   # YAML files in conf; the vocabulary is words (the default) or what spells words:
                   # char, bpe-SIZE, unigram-SIZE; empty: kn5 lstm gcnn elmo@char esulmo@bpe-500 for
                   # mini and wikitext2, the published sizes for the others; none: only the grids
grids=             # grids to train: names of YAML files in conf/grids, as in "gates context
                   # training output pieces"
conf=              # directory with the YAML files; what it lacks is taken from ../../conf (grids:
                   # conf/grids); empty: conf for mini, conf/CORPUS for the others
train_opts=        # key=value settings over the YAML files and the grids, as in steps=100
nj=2               # processes that train and score at a time; 1 with a GPU
shard_size=        # bytes of text of a shard of the training corpus, as in 500M; training holds one
                   # shard, several processes write them; empty: one file
memory=2G          # that sorting n-grams may take; more is on the disk of expdir
timed=none         # LMs whose throughput is measured: names, all (with the runs of grids that ask
                   # for it) or none
published=false    # true: throughput of LSTM-2048, GCNN-9 and GCNN-8 Bottleneck at their published
                   # sizes too, with random weights
bench_opts=        # options of lmtools bench lm, as in "--device cuda --repeats 5"; empty: for mini
                   # "--seconds 0.2", else its defaults
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
datadir=data       # for prepared data
expdir=exp         # for models, perplexities and results
defaults() {
  case $corpus in
    mini) source=$mini conf=${conf:-conf} bench_opts=${bench_opts:---seconds 0.2} ;;
    text) source=$text_dir conf=${conf:-conf} ;;
    gbw | wikitext103 | wikitext2) source=local/$corpus.sha256 conf=${conf:-conf/$corpus} ;;
    *) wrong "--corpus is '$corpus'; it takes mini, text, gbw, wikitext103 or wikitext2" ;;
  esac
  [[ $source ]] || wrong "--corpus text needs --text-dir DIR with train.txt, valid.txt and test.txt"
  case $corpus,$line in
    *,paragraph) ;;
    wikitext*,article) article=true ;;
    *) wrong "--line is '$line'; it takes paragraph, and article with wikitext103 and wikitext2" ;;
  esac
  case $corpus in
    gbw) : "${lms:=kn5 lstm-2048 lstm-2048-2 gcnn-13 gcnn-14b elmo@char esulmo@bpe-500}" ;;
    wikitext103) : "${lms:=kn5 lstm-1024 gcnn-8 gcnn-14}" ;;
    *) : "${lms:=kn5 lstm gcnn elmo@char esulmo@bpe-500}" ;;
  esac
  case $corpus in
    wikitext*) : "${min_count:=1}" ;;
    *) : "${min_count:=3}" ;;
  esac
}
options "$@"

# LMs by name: of n-grams the order, of others the YAML file, the vocabulary, settings over the file
read -ra compared <<<"$grids"
names=() ngrams=() neural=() binarised=() timeable=()
declare -A order=() yaml=() vocabulary=() changes=()
planned=$(python3 local/grids.py plan "$conf" "$lms" "${compared[@]}") ||
  [[ $recipe_help = true ]] || exit 2
while IFS=$'\t' read -r name source_file spelling speed over; do
  [[ $name ]] || continue
  names+=("$name")
  [[ $speed != timed ]] || timeable+=("$name")
  if [[ $source_file = kn* ]]; then
    ngrams+=("$name") order[$name]=${source_file#kn}
  else
    neural+=("$name") yaml[$name]=$source_file vocabulary[$name]=$spelling changes[$name]=$over
    [[ " ${binarised[*]} " = *" $spelling "* ]] || binarised+=("$spelling")
  fi
done <<<"$planned"
((${#names[@]})) || wrong "no LMs to train; name some with --lms, or grids with --grids"
bench=() benched=() # options of lmtools bench lm, and what it writes
for name in "${timeable[@]}"; do
  [[ $timed != all && " $timed " != *" $name "* ]] || bench+=(--lm "$name=$expdir/lm/$name")
done
[[ $published = false ]] || bench+=(--published)
((${#bench[@]} == 0)) || benched=(lm.json)
read -ra settings <<<"$train_opts"
read -ra further <<<"$bench_opts"
read -ra normal <<<"--normaliser $normaliser"
cores=$([[ $cmd = local ]] && nproc || echo "$nj")

if stage 0 "get data" "$source" : "$datadir/local/$corpus"; then
  case $corpus in
    mini) python3 ../../utils/unpack.py "$mini" "$datadir/local/mini" train.txt valid.txt ;;
    text) python3 ../../utils/unpack.py "$text_dir" "$datadir/local/text" {train,valid,test}.txt ;;
    *) local/get_"$corpus".sh "$datadir/local/$corpus" ${url:+"$url"} ;;
  esac
fi

if stage 1 "prepare text" "$datadir/local/$corpus" : "$datadir"/{train,valid,test}/text; then
  python3 local/prepare.py "$corpus" "$datadir/local/$corpus" "$datadir" ${article:+article}
fi

if stage 2 "vocabularies and binarise" "$datadir"/{train,valid}/text \
  : "$expdir"/vocabulary/{words,"{binarised}"} "$expdir/corpus/{binarised}"/{train,valid}.bin; then
  lmtools subword --text "$datadir/train/text" --type word --min-count "$min_count" \
    "${normal[@]}" --nj "$cores" --out "$expdir/vocabulary/words"
  for name in "${binarised[@]}"; do # words, char, or what else spells words: bpe-500
    size=${name#*-}
    [[ $name != "$size" ]] || size= # char: all characters
    [[ $name = words ]] || lmtools subword --text "$datadir/train/text" --type "${name%%-*}" \
      ${size:+--vocab-size "$size"} --words "$expdir/vocabulary/words" "${normal[@]}" \
      --out "$expdir/vocabulary/$name"
    for set in train valid; do
      cut=()
      [[ $set != train || ! $shard_size ]] || cut=(--shard-size "$shard_size")
      lmtools corpus --text "$datadir/$set/text" --subword "$expdir/vocabulary/$name" \
        "${cut[@]}" --nj "$cores" --out "$expdir/corpus/$name/$set.bin"
    done
  done
  python3 local/overlap.py "$expdir/vocabulary"
fi

if stage 3 "train LMs" "$datadir/train/text" "$expdir"/vocabulary/{words,"{binarised}"} \
  "$expdir/corpus/{binarised}"/{train,valid}.bin "$conf" conf/grids ../../conf \
  : "$expdir/lm/{ngrams}/config.yaml" "$expdir/lm/{neural}/model.safetensors" \
  "$expdir/grids/{compared}.yaml"; then
  ((${#compared[@]} == 0)) ||
    python3 local/grids.py write "$conf" "${compared[@]}" "$expdir/grids"
  for name in "${ngrams[@]}"; do
    submit lmtools ngram --text "$datadir/train/text" --order "${order[$name]}" --unk \
      --subword "$expdir/vocabulary/words" --memory "$memory" --out "$expdir/lm/$name"
  done
  for name in "${neural[@]}"; do
    corpora=$expdir/corpus/${vocabulary[$name]}
    echo "$(quoted --conf "${yaml[$name]}" --train "$corpora/train.bin" \
      --valid "$corpora/valid.bin" --out "$expdir/lm/$name")" \
      ${changes[$name]:+"${changes[$name]}"} ${train_opts:+"$(quoted "${settings[@]}")"}
  done | train_each
fi

if stage 4 "perplexity" "$expdir/lm/{ngrams}/config.yaml" "$expdir/lm/{neural}/model.safetensors" \
  "$datadir"/{valid,test}/text : "$expdir/ppl/{names}"/{valid,test}.json; then
  for name in "${names[@]}"; do
    for set in valid test; do
      lmtools ppl --lm "$expdir/lm/$name" --text "$datadir/$set/text" --precision "$precision" \
        --nj "$nj" --cache "$expdir/cache" --out "$expdir/ppl/$name/$set.json"
    done
    for kept in "$expdir/lm/$name"/epoch-*; do # by the setting keep_epochs
      [[ ! -d $kept ]] || lmtools ppl --lm "$kept" --text "$datadir/test/text" \
        --precision "$precision" --nj "$nj" --cache "$expdir/cache" \
        --out "$expdir/ppl/$name/test-${kept##*/}.json"
    done
  done
fi

if stage 5 "throughput and responsiveness" "$expdir/lm/{ngrams}/config.yaml" \
  "$expdir/lm/{neural}/model.safetensors" "$datadir/test/text" : "$expdir/bench/{benched}"; then
  ((${#benched[@]} == 0)) || lmtools bench lm "${bench[@]}" --text "$datadir/test/text" \
    --precision "$precision" "${further[@]}" --out "$expdir/bench/lm.json"
fi

if stage 6 "report" "$expdir/ppl/{names}"/{valid,test}.json "$expdir/grids/{compared}.yaml" \
  "$expdir/bench/{benched}" conf/report.yaml : "$expdir"/report/{RESULTS.md,index.html}; then
  lmtools report "$expdir" --conf conf/report.yaml --title "${PWD##*/} ($corpus)"
fi
