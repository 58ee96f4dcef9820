# What the stages of recipes share after training: lists scored by every column of an experiment, its
# systems tuned on one set and used on all. recipe.sh sources it; the options $precision, $nj and
# $expdir are the recipe's, $cache may name another cache than $expdir/cache.
#
#   score_sets EXPERIMENT LM DATA OUT "SET ..." [OPTION of lmtools score ...]
#     DATA/SET/nbest.jsonl -> OUT/score/{column}/SET.scores
#   rescore_sets EXPERIMENT DATA OUT DEV "SET ..." [OPTION of lmtools tune ...]
#     OUT/score -> OUT/tune/{system}/weights.json, OUT/rescore/{system}/SET.txt
# shellcheck shell=bash disable=SC2154  # the recipe's options

score_sets() {
  local set
  for set in $5; do
    lmtools score --experiment "$1" --lm "$2" --nbest "$3/$set/nbest.jsonl" \
      --precision "${precision:-auto}" --nj "$nj" --cache "${cache:-$expdir/cache}" "${@:6}" \
      --out "$4/score/{column}/$set.scores"
  done
}

rescore_sets() {
  local set
  lmtools tune --experiment "$1" --nbest "$2/$4/nbest.jsonl" --nj "$nj" "${@:6}" \
    --scores "$3/score/{column}/$4.scores" --out "$3/tune/{system}/weights.json"
  for set in $5; do
    lmtools rescore --experiment "$1" --nbest "$2/$set/nbest.jsonl" \
      --scores "$3/score/{column}/$set.scores" --weights "$3/tune/{system}/weights.json" \
      --out "$3/rescore/{system}/$set.txt"
  done
}
