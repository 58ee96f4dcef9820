#!/usr/bin/env bash
# networks.sh ACTION LISTS EXPDIR CASE ARGUMENT..: what run_networks.sh does to one case, whose lists
# are LISTS/CASE/{dev,test}: score LM, tune OPTIONS, build "SCALES";
# rover VOSK (the other recogniser's lists of CASE/test), lattices F REFS "SCALES".
set -euo pipefail
action=$1 lists=$2/$4 exp=$3 case=$4 more=("${@:5}")
out=$exp/$action/$case
mkdir -p "$out"

given() { # SET: the options by which its lists are rescored
  echo --nbest "$lists/$1/nbest.jsonl" --weights "$exp/tune/$case/weights.json" \
    --scores "ngram=$exp/score/$case/$1.scores"
}

score() { # LM
  for set in dev test; do
    lmtools score --nbest "$lists/$set/nbest.jsonl" --lm "$1" --out "$out/$set.scores"
  done
}

tune() { # OPTION..
  lmtools tune --nbest "$lists/dev/nbest.jsonl" --scores "ngram=$exp/score/$case/dev.scores" "$@" \
    --out "$out/weights.json"
  # shellcheck disable=SC2046
  lmtools rescore $(given test) --out "$out/test.txt"
}

# shellcheck disable=SC2046,SC2086
build() { # SCALES: that of the highest NCE on dev; all confidences of test are measured with it
  for scale in $1; do
    lmtools network build $(given dev) --scale "$scale" --out "$out/dev.$scale.json"
  done
  lmtools network measure "$out"/dev.*.json > "$out/scales.result"
  scale=$(sed 's/.*dev\.\(.*\)\.json:.* NCE \([^,]*\),.*/\2 \1/' "$out/scales.result" | sort -g | tail -1 | cut -d' ' -f2)
  lmtools network build $(given test) --scale "$scale" --out "$out/posteriors.json"
  for method in temperature logistic isotonic; do
    lmtools network calibrate "$out/dev.$scale.json" --method $method --out "$out/$method.map.json"
    lmtools network build $(given test) --scale "$scale" --calibration "$out/$method.map.json" \
      --out "$out/$method.json"
  done
  lmtools network measure "$out"/{posteriors,temperature,logistic,isotonic}.json \
    --figure "$out/confidences.png" > "$out/confidences.result"
}

rover() { # VOSK: each half of the utterances by what was tuned on the other
  for half in 0 1; do
    awk "NR % 2 == $half" "$lists/test/nbest.jsonl" > "$out/whisper.$half.jsonl"
    awk "NR % 2 == $half" "$1/nbest.jsonl" > "$out/vosk.$half.jsonl"
    lmtools network tune "$out"/{whisper,vosk}.$half.jsonl --scale 0.3 --out "$out/vote.$half.json"
  done
  for half in 0 1; do
    systems=("$out"/{whisper,vosk}".$half.jsonl" --scale 0.3 --to text)
    lmtools network rover "${systems[@]}" --weights "$out/vote.$((1 - half)).json" \
      --out "$out/tuned.$half.txt"
    for method in freq average share; do
      lmtools network rover "${systems[@]}" --method $method --alpha 0.5 --null 0.7 \
        --out "$out/$method.$half.txt"
    done
    lmtools network build --nbest "$out/whisper.$half.jsonl" --scale 0.3 --to text \
      --out "$out/whisper.$half.txt"
  done
  cat "$out"/whisper.[01].txt > "$out/whisper.txt"
  for method in tuned freq average share; do
    cat "$out/$method".[01].txt > "$out/$method.txt"
    lmtools evaluate --ref "$lists/test/text" --hyp "$out/$method.txt" \
      --against "$out/whisper.txt" > "$out/$method.result"
  done
}

lattices() { # F REFS SCALES
  lmtools network build --lattices "$1" --choice best --to text --out "$out/best.txt"
  cut -d' ' -f2- "$out/best.txt" > "$out/best.lines"
  for scale in $3; do
    lmtools network build --lattices "$1" --scale "$scale" --to text --out "$out/$scale.txt"
    cut -d' ' -f2- "$out/$scale.txt" > "$out/$scale.lines"
    lmtools evaluate --plain --ref "$2" --hyp "$out/$scale.lines" --against "$out/best.lines" \
      > "$out/$scale.result"
  done
}

"$action" "${more[@]}"
