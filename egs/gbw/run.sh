#!/usr/bin/env bash
# One Billion Word and WikiText: train n-gram, LSTM, gated convolutional and two-way (ELMo, subword ELMo) language models on text, and
# compare their perplexities and what they cost.
#
# --corpus mini (the default) needs no network: the Bible text of egs/librispeech's mini corpus.
# --corpus gbw, wikitext103 and wikitext2 fetch the published corpora and prepare them as published.
# --grids "gates context" trains the runs of conf/grids/gates.yaml and context.yaml too.

cd "$(dirname "$0")" && . ../../utils/recipe.sh

corpus=mini        # mini, gbw, wikitext103 or wikitext2
mini=../librispeech/mini # directory of the mini corpus: train.txt valid.txt, plain, .gz or .xz; your own in this form will do as well
url=               # where to fetch the corpus; empty: its public address
normaliser=none    # of text: none (as published), cased or librispeech (lower case, no punctuation); flags that lmtools subword
                   # knows may follow, as in "librispeech --apostrophe strip"
min_count=         # words seen less often are <unk>; empty: 3 for mini and gbw, 1 for wikitext103 and wikitext2, whose text has <unk>
lms=               # LMs to train, NAME or NAME@VOCABULARY: knN, a Kneser-Ney N-gram, and names of YAML files in conf; the vocabulary is
                   # words (the default) or what spells words: char, bpe-SIZE, unigram-SIZE; empty: kn5 lstm gcnn elmo@char
                   # esulmo@bpe-500 for mini and wikitext2, the published sizes for the others; none: only the grids
grids=             # grids to train: names of YAML files in conf/grids, as in "gates context training output pieces"
conf=              # directory with the YAML files; what it lacks is taken from ../../conf (grids: conf/grids); empty:
                   # conf for mini, conf/CORPUS for the others
train_opts=        # key=value settings over the YAML files and the grids, as in steps=100
nj=2               # processes that train and score at a time; 1 with a GPU
processes=1        # processes of one training, by torchrun: the number of GPUs
memory=2G          # of KenLM's lmplz, where it is installed and the text large
timed=none         # LMs whose throughput is measured: names, all (with the runs of grids that ask for it) or none
published=false    # true: throughput of LSTM-2048, GCNN-9 and GCNN-8 Bottleneck at their published sizes too, with random weights
bench_opts=        # options of lmtools bench lm, as in "--device cuda --repeats 5"; empty: for mini "--seconds 0.2", else its defaults
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
datadir=data       # for prepared data
expdir=exp         # for models, perplexities and results
options "$@"

[[ $corpus = @(mini|gbw|wikitext103|wikitext2) ]] || wrong "--corpus is '$corpus'; it takes mini, gbw, wikitext103 or wikitext2"

. local/plan.sh # what the stages read and write, from these options

if stage 0 "get data" "$source" : "$raw"; then
  "${get[@]}"
fi

if stage 1 "prepare text" "$raw" : "${texts[@]}"; then
  python3 local/prepare.py "$corpus" "$raw" "$datadir"
fi

if stage 2 "vocabularies and binarise" "${texts[@]:0:2}" : "${vocabularies[@]}" "${corpora[@]}"; then
  lmtools subword --text "$datadir/train/text" --type word --min-count "$min_count" "${normal[@]}" --nj "$cores" \
    --out "$vocabulary/words"
  for name in "${pieces[@]}"; do
    size=${name#*-}
    [[ $name != "$size" ]] || size= # char: all characters
    lmtools subword --text "$datadir/train/text" --type "${name%%-*}" ${size:+--vocab-size "$size"} --words "$vocabulary/words" \
      "${normal[@]}" --out "$vocabulary/$name"
  done
  for name in "${binarised[@]}"; do
    for set in train valid; do
      lmtools corpus --text "$datadir/$set/text" --subword "$vocabulary/$name" --nj "$cores" --out "$expdir/corpus/$name/$set.bin"
    done
  done
fi

if stage 3 "train LMs" "$datadir/train/text" "${vocabularies[@]}" "${corpora[@]}" "${confs[@]}" : "${trained[@]}" "${drawn[@]}"; then
  ((${#drawn[@]} == 0)) || python3 local/grids.py write "$conf" "${compared[@]}" "$expdir/grids"
  for name in "${ngrams[@]}"; do
    lmtools ngram --text "$datadir/train/text" --order "${order[$name]}" --subword "$vocabulary/words" --unk --memory "$memory" \
      --out "$expdir/lm/$name"
  done
  printf '%s\n' "${jobs[@]}" | OMP_NUM_THREADS=$threads xargs -r -P "$nj" -L 1 "${train[@]}"
fi

if stage 4 "perplexity" "${trained[@]}" "${texts[@]:1}" : "${ppls[@]}"; then
  for name in "${names[@]}"; do
    for set in valid test; do
      lmtools ppl --lm "$expdir/lm/$name" --text "$datadir/$set/text" --precision "$precision" --nj "$nj" --cache "$expdir/cache" \
        --out "$expdir/ppl/$name/$set.json"
    done
  done
fi

if stage 5 "throughput and responsiveness" "${trained[@]}" "$datadir/test/text" : "${benched[@]}"; then
  ((${#benched[@]} == 0)) || lmtools bench lm "${bench[@]}" --out "$expdir/bench/lm.json"
fi

if stage 6 "report" "${ppls[@]}" "${drawn[@]}" "${benched[@]}" : "$expdir"/report/{RESULTS.md,index.html}; then
  lmtools report "$expdir" --title "${PWD##*/} ($corpus)"
fi
