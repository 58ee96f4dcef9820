#!/usr/bin/env bash
# Real speech: LMs trained on books rescore N-best lists of human speech by real recognisers. Neural
# LMs read the text of each of --sizes once, n-grams of words read all of it.

# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh
# shellcheck disable=SC2034  # recipe.sh reads them
recipe_script=local/real.sh recipe_command=local/real.sh

text_dir=         # books: FILE.txt, plain, .gz or .xz, a sentence a line
leave_out="books-b:773850-775202 books-b:797493-800788" # lines that hold sentences of the lists:
                  # NAME:FIRST-LAST of the file that begins with NAME
nbest_dir=        # N-best lists with references: SET.jsonl for each set of --pairs and --crossed
whisper=.whisper-base-natural # end of the names of sets by Whisper, whose score avg is left out
pairs="train-clean-367$whisper:test-other-100$whisper ocean-dev-300$whisper:ocean-test-600$whisper"
                  # DEV:TEST: tuned on one set, tested on the other
crossed="train-clean-367$whisper+test-other-100$whisper test-other-100.vosk-small" # sets, or SET+SET
                  # for both as one, each speaker of which is tested by weights tuned on the others
sizes="1M 3M 10M" # words of text for neural LMs
lms="causal masked tta" # neural LMs, as conf says
orders="4 5"      # of n-grams; each neural LM is with the first too
valid=2000        # sentences held out for validation
vocab_size=5000   # BPE pieces of neural LMs
subword_text=10M  # what they are learnt from, one of --sizes
combine=10M       # size of the neural LMs that are combined with each other and the n-gram
mbr_scale=0.5     # of the lists' own scores, for minimum Bayes risk
train_opts="epochs=1 arch.dim=192 arch.ffn=768 batch.tokens=2048" # key=value settings over conf
nj=2              # processes at a time
expdir=exp/real   # for text, LMs and results
options "$@"
[[ $text_dir && $nbest_dir ]] || wrong "--text-dir has the books, --nbest-dir the lists; name both"

data=$expdir/data cases=() grams=() neural=() systems=() parts=(valid)
for size in $sizes; do parts+=("train-$size"); done
for pair in $pairs $crossed; do cases+=("${pair/:/-to-}"); done
for order in $orders; do grams+=("ngram$order"); done
all=${grams[0]}
for lm in $lms; do
  for size in $sizes; do neural+=("$lm-$size") systems+=("$lm-$size+${grams[0]}"); done
  all+=+$lm-$combine
done
names=("${grams[@]}" "${neural[@]}")

# join_lists SETS OUT: the lists of SET+SET, written as LibriSpeech's text is.
join_lists() {
  local set
  mkdir -p "$(dirname "$2")"
  for set in ${1//+/ }; do cat "$nbest_dir/$set.jsonl"; done |
    lmtools convert - "$2" --format jsonl --to jsonl --normaliser librispeech \
      --map-words conf/titles.txt --dedup
}

if stage 0 "prepare text and lists" "$text_dir" "$nbest_dir" : "$data"; then
  python3 local/real_text.py "$data" "$valid" "$sizes" "$leave_out" conf/titles.txt \
    "$text_dir"/*.txt*
  for case in "${cases[@]}"; do
    join_lists "${case%-to-*}" "$data/$case/dev/nbest.jsonl"
    [[ $case != *-to-* ]] || join_lists "${case#*-to-}" "$data/$case/test/nbest.jsonl"
  done
fi

if stage 1 "subword and binarise" "$data" : "$expdir/subword" "$expdir/{parts}.bin"; then
  lmtools subword --text "$data/train-$subword_text.txt" --type bpe --vocab-size "$vocab_size" \
    --normaliser librispeech --out "$expdir/subword"
  for part in "${parts[@]}"; do
    lmtools corpus --text "$data/$part.txt" --subword "$expdir/subword" --out "$expdir/$part.bin"
  done
fi

if stage 2 "train LMs" "$data" "$expdir/{parts}.bin" conf \
  : "$expdir/lm/{grams}/config.yaml" "$expdir/lm/{neural}/model.safetensors"; then
  for order in $orders; do
    submit lmtools ngram --text "$data/train.txt" --order "$order" --normaliser librispeech \
      --out "$expdir/lm/ngram$order"
  done
  read -ra settings <<<"$train_opts"
  for name in "${neural[@]}"; do
    quoted --conf "conf/${name%-*}.yaml" --train "$expdir/train-${name##*-}.bin" \
      --valid "$expdir/valid.bin" --out "$expdir/lm/$name" "${settings[@]}"
  done | train_each
fi

if stage 3 "score" "$data" "$expdir/lm/{grams}/config.yaml" "$expdir/lm/{neural}/model.safetensors" \
  : "$expdir/{cases}/score/{names}" "$expdir/{cases}/score/mbr"; then
  for case in "${cases[@]}"; do
    for lists in "$data/$case"/*/nbest.jsonl; do
      set=${lists%/*} && set=${set##*/}
      for name in "${names[@]}"; do
        lmtools score --lm "$expdir/lm/$name" --nbest "$lists" --precision auto --nj "$nj" \
          --cache "$expdir/cache" --out "$expdir/$case/score/$name/$set.scores"
      done
      lmtools mbr --nbest "$lists" --utility wer --scale "$mbr_scale" \
        --out "$expdir/$case/score/mbr/$set.scores"
    done
  done
fi

if stage 4 "tune, rescore, report" "$data" "$expdir/{cases}/score/{names}" conf/report.yaml \
  : "$expdir/{cases}/report/RESULTS.md"; then
  for case in "${cases[@]}"; do
    with=(--systems conf/systems.yaml "lms=${names[*]}" "combinations=${systems[*]} $all" others=mbr)
    folds=(--folds speaker) fix=()
    [[ $case != *-to-* ]] || folds=()
    [[ $case != *"$whisper"* ]] || fix=(--fix avg=0)
    lmtools tune "${with[@]}" "${folds[@]}" "${fix[@]}" --nbest "$data/$case/dev/nbest.jsonl" --metric wer \
      --nj "$nj" --scores "$expdir/$case/score/{lm}/dev.scores" \
      --out "$expdir/$case/tune/{system}/weights.json"
    for lists in "$data/$case"/*/nbest.jsonl; do
      set=${lists%/*} && set=${set##*/}
      lmtools rescore "${with[@]}" --nbest "$lists" --scores "$expdir/$case/score/{lm}/$set.scores" \
        --weights "$expdir/$case/tune/{system}/weights.json" \
        --out "$expdir/$case/rescore/{system}/$set.txt"
    done
    lmtools report "$expdir/$case" --nbest "$data/$case"/*/nbest.jsonl --conf conf/report.yaml \
      --title "$case"
  done
  panels=()
  for case in "${cases[@]}"; do
    [[ $case = *-to-* ]] && panels+=("$case/test:WER, $case") || panels+=("$case/dev:WER, $case")
  done
  ((${#neural[@]} == 0)) || python3 local/real_curve.py "$expdir" "$expdir/curve.png" "${panels[@]}"
fi
