# Lists in --nbest-dir and LMs that are there (--lm-dirs): there is no text, nothing is trained. Sets
# are dev and all others in the directory; references are in the lists, or Kaldi text in
# DIR/SET.text.
# shellcheck shell=bash disable=SC2034,SC2154
[[ ! $lms || $lms = "${recipe_default[lms]}" ]] ||
  wrong "--corpus lists trains no LMs; name those that are there with --lm-dirs"
[[ $paper = false ]] || wrong "--corpus lists trains no LMs, as --paper would"
source=$nbest_dir texts=() sets=() lms=
for path in "$nbest_dir"/dev{,.*} "$nbest_dir"/*; do
  name=${path##*/} && name=${name%%.*}
  [[ ! -e $path || $path = *.text || " ${sets[*]} " = *" $name "* ]] || sets+=("$name")
done
[[ ${sets[0]-} = dev || $folds || ! $nbest_dir ]] ||
  wrong "--nbest-dir $nbest_dir has no lists called dev to tune on; add them, or give --folds"
decoded=("${sets[@]}")
: "${depth:=50}" "${order:=4}" "${mixtures:=none}"
lm_conf=conf lm_size=0 word_conf=conf word_size=0

get_corpus() {
  rm -rf "$raw"
  mkdir -p "$raw"
  find -L "$nbest_dir" -maxdepth 1 -name '*.text' -exec cp {} "$raw" \;
}
finish_sets() { :; }
