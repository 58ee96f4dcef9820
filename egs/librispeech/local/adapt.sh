#!/usr/bin/env bash
# A language model for one's own domain: of general text and some text of the domain, n-grams alone
# and mixed, neural LMs alone and going on from general text, and the general bigram to subtract
# (low-order density ratio): perplexity on both domains and WER of N-best lists of the domain, by
# how many lines of the domain there are.

# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh
# shellcheck disable=SC2034  # recipe.sh reads them
recipe_script=local/adapt.sh recipe_command=local/adapt.sh

general=mini-real/train.txt.xz # general text: a file, or a directory of FILE.txt, plain, .gz or .xz
domain=mini/train.txt.xz # text of the domain, in the same forms
lines="5000 1000 100" # of the domain: so many drawn from its text, and all. One of ten, at most
                  # 500, is held out: mixtures and the end of training are decided on it
dev=mini/dev.nbest.jsonl.xz # N-best lists of the domain with references, to tune on
test=mini/test.nbest.jsonl.xz # others, to test on
nbest_format=jsonl # their format, one that lmtools convert knows
source=           # text of the kind that the recogniser was trained on, whose bigram may be
                  # subtracted; empty: the general text
general_lm=       # a neural LM of general text to go on from, of BPE or unigram pieces; empty:
                  # conf is trained on the general text
normaliser=librispeech # of text and hypotheses; flags that lmtools subword knows may follow
order=4           # of n-grams
min_count="1 1 2" # of the general n-gram: those that occur less often are left out, by order
vocab_size=2000   # BPE pieces of the general text
conf=conf/causal.yaml # of the neural LMs
train_opts=       # key=value settings over conf, for all neural LMs
domain_opts="epochs=20 patience=3 batch.tokens=512 optim.lr=1e-3 optim.warmup=100" # for those of the
                  # domain
init_opts=        # for those of the domain that go on from general text
oov_penalty=11    # nats that a word which an n-gram does not know costs in perplexities, beside
                  # <unk>: the log of 60,000 words; without it few lines seem to know all
objective=expected # what tuning minimises: expected or exact, see lmtools tune
nj=2              # processes at a time
expdir=exp/adapt  # for text, LMs and results
options "$@"
one_of objective expected exact

read -ra sizes <<<"$lines"
# shellcheck disable=SC2034  # stage reads them
data=$expdir/data sets=(dev test) kinds=(train valid) parts=(train valid test)
base=${general_lm:-$expdir/lm/neural-general} pieces=$expdir/subword
grams=(ngram-general) neural=() combined=() made=()
[[ $general_lm ]] || made=("$base")
for size in "${sizes[@]}"; do
  grams+=("ngram-$size" "mixed-$size") neural+=("neural-$size" "continued-$size")
  combined+=("ngram-$size+source" "mixed-$size+source" "continued-$size+source")
  combined+=("mixed-$size+continued-$size" "mixed-$size+continued-$size+source")
done
names=("${grams[@]}" neural-general "${neural[@]}") columns=("${grams[@]}" neural-general)
columns+=("${neural[@]}" source)
read -ra normal <<<"--normaliser $normaliser"
read -ra cut <<<"$min_count"
read -ra settings <<<"$train_opts"

# lm_of NAME: its directory.
lm_of() {
  [[ $1 = neural-general ]] && echo "$base" || echo "$expdir/lm/$1"
}

# estimate NAME TEXT OPTION...: an n-gram of words.
estimate() {
  submit lmtools ngram --text "$2" "${normal[@]}" "${@:3}" --out "$expdir/lm/$1"
}

# train_neural PART NAME OPTION...: the words after `lmtools train`, on a line.
train_neural() {
  quoted --conf "$conf" --train "$expdir/train-$1.bin" --valid "$expdir/valid-$1.bin" \
    --out "$(lm_of "$2")" "${@:3}"
}

if stage 0 "split text, prepare lists" "$general" "$domain" "$dev" "$test" ${source:+"$source"} \
  : "$data/{parts}-general.txt" "$data/{kinds}-{sizes}.txt" \
  "$data/{sets}"/{nbest.jsonl,text}; then
  python3 local/adapt_text.py general "$data" "$general"
  python3 local/adapt_text.py domain "$data" "$domain" "${sizes[@]}"
  for set in "${sets[@]}"; do
    lmtools convert "${!set}" "$data/$set/nbest.jsonl" --format "$nbest_format" --to jsonl
    python3 ../../utils/references.py "$data/$set/nbest.jsonl" "$data/$set/text"
  done
fi

if stage 1 "n-grams and their mixtures" "$data/{kinds}-{sizes}.txt" "$data/train-general.txt" \
  ${source:+"$source"} : "$expdir/lm/{grams}/config.yaml" "$expdir/lm/source/config.yaml"; then
  estimate ngram-general "$data/train-general.txt" --order "$order" --min-count "${cut[@]}"
  estimate source "${source:-$data/train-general.txt}" --order 2
  for size in "${sizes[@]}"; do
    estimate "ngram-$size" "$data/train-$size.txt" --order "$order"
    lmtools ngram mix "$expdir/lm/ngram-general" "$expdir/lm/ngram-$size" \
      --text "$data/valid-$size.txt" --out "$expdir/lm/mixed-$size"
  done
fi

if stage 2 "neural LMs: of general text, of the domain's, of both" "$data/{kinds}-{sizes}.txt" \
  "$data"/{train,valid}-general.txt "$conf" \
  ${general_lm:+"$general_lm"} : "${made[@]/%//model.safetensors}" "$expdir/{kinds}-{sizes}.bin" \
  "$expdir/lm/{neural}/model.safetensors"; then
  if [[ $general_lm ]]; then
    lmtools subword --model "$general_lm/subword/subword.model" "${normal[@]}" --out "$pieces"
  else
    lmtools subword --text "$data/train-general.txt" --type bpe --vocab-size "$vocab_size" \
      "${normal[@]}" --out "$pieces"
    lmtools corpus --text "$data/train-general.txt" --subword "$pieces" \
      --out "$expdir/train-general.bin"
  fi
  lmtools corpus --text "$data/valid-general.txt" --subword "$pieces" \
    --out "$expdir/valid-general.bin"
  for part in "${sizes[@]/#/train-}" "${sizes[@]/#/valid-}"; do
    lmtools corpus --text "$data/$part.txt" --subword "$pieces" --out "$expdir/$part.bin"
  done
  {
    [[ $general_lm ]] || train_neural general neural-general "${settings[@]}"
    read -ra settings <<<"$train_opts $domain_opts"
    for size in "${sizes[@]}"; do train_neural "$size" "neural-$size" "${settings[@]}"; done
  } | train_each
  read -ra settings <<<"$train_opts $domain_opts $init_opts"
  for size in "${sizes[@]}"; do
    train_neural "$size" "continued-$size" --init "$base" \
      --also-valid general="$expdir/valid-general.bin" "${settings[@]}"
  done | train_each
fi

if stage 3 "score" "$data/{sets}"/{nbest.jsonl,text} "$data/test-general.txt" \
  "$expdir/lm/{grams}/config.yaml" "$expdir/lm/source/config.yaml" "$base/model.safetensors" \
  "$expdir/lm/{neural}/model.safetensors" \
  : "$expdir/ppl/{names}"/{test,general}.json "$expdir/score/{columns}/{sets}.scores"; then
  for name in "${names[@]}"; do
    with=(--lm "$(lm_of "$name")" --precision auto --oov-penalty "$oov_penalty")
    quoted "${with[@]}" --text "$data/test-general.txt" --out "$expdir/ppl/$name/general.json"
    quoted "${with[@]}" --kaldi --text "$data/test/text" --out "$expdir/ppl/$name/test.json"
  done | each 1 lmtools ppl
  for name in "${columns[@]}"; do
    for set in "${sets[@]}"; do
      lmtools score --lm "$(lm_of "$name")" --nbest "$data/$set/nbest.jsonl" --precision auto \
        --nj "$nj" --cache "$expdir/cache" --out "$expdir/score/$name/$set.scores"
    done
  done
fi

if stage 4 "tune, rescore, report" "$data/{sets}/nbest.jsonl" "$expdir/ppl/{names}" \
  "$expdir/score/{columns}/{sets}.scores" conf/systems.yaml conf/report.yaml \
  : "$expdir/report/RESULTS.md" "$expdir/report"/curve.{md,png}; then
  with=(--systems conf/systems.yaml "lms=${names[*]}" "combinations=${combined[*]}" others=source)
  lmtools tune "${with[@]}" --nbest "$data/dev/nbest.jsonl" --metric wer --objective "$objective" \
    --negative source --nj "$nj" --scores "$expdir/score/{lm}/dev.scores" \
    --out "$expdir/tune/{system}/weights.json"
  for set in "${sets[@]}"; do
    lmtools rescore "${with[@]}" --nbest "$data/$set/nbest.jsonl" \
      --scores "$expdir/score/{lm}/$set.scores" --weights "$expdir/tune/{system}/weights.json" \
      --out "$expdir/rescore/{system}/$set.txt"
  done
  lmtools report "$expdir" --nbest "$data"/{dev,test}/nbest.jsonl --conf conf/report.yaml \
    --title "general text and a domain's"
  python3 local/adapt_curve.py "$expdir" "${sizes[@]}"
fi
