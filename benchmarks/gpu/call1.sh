#!/usr/bin/env bash
# Call 1 of a loan, 2 to 3 minutes: what the machine is; tokens a second of one and of three
# trainings of the T-TA paper's size, which set the steps of call 3; T-TA against biLM in batches
# (Figure 6 of the T-TA paper times one sentence); a step of the sampling paper's 42 layers.
# shellcheck source=common.sh
. "$(dirname "$0")/common.sh"

say machine
nvidia-smi 2>/dev/null || echo "no nvidia-smi"
python3 -c 'import lmtools.cli, lmtools.train, rapidfuzz, sentencepiece, torch
print("torch", torch.__version__, "GPU" if torch.cuda.is_available() else "no GPU")'

if [[ $trial = true ]]; then
  rate=(--together 2 --batch "$batch" --length 6 --seconds 0.1 --vocab-size 100)
  batched=(--length 4 --rows 64 --repeats 1 --seconds 0 --vocab-size 100)
  deep=(--vocab-size 100 --batch 2 --repeats 1 --seconds 0 --length 3)
  criteria=bce-nce
else
  rate=(--together "1,3" --batch "$batch,32768" --seconds 15)
  batched=(--length "10,20,40" --rows "8192,65536,262144" --seconds 0.3)
  deep=(--vocab-size 200000 --batch 64 --repeats 3 --seconds 0.3)
  criteria=bce-nce,ce-is,bce
fi
say rate
bench rate "${rate[@]}" --device "$device" --precision auto --time "$train_seconds" \
  --out "$out/rate.json" "${sizes[@]}"
cp "$out/rate.json" "$work/rate.json"
say batched
bench batched "${batched[@]}" --device "$device" --out "$out/batched.json" "${shape[@]}"
say "42 layers"
bench criteria "${deep[@]}" --conf conf/causal42.yaml --device "$device" \
  --criteria "$criteria" --out "$out/causal42.json" "${sizes[@]}"
say end
