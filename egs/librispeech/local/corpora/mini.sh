# The embedded corpus, or one of that form in --mini: references and lattices come with its lists.
# Each file here sets what run.sh's options leave to the corpus, how stage 0 gets it, and what stage
# 1 does with its sets at the end; a corpus is added by such a file.
# shellcheck shell=bash disable=SC2034,SC2154
source=$mini sets=(dev test) decoded=(dev test)
: "${nbest_dir:=$raw}" "${depth:=20}" "${order:=4}" "${mixtures:=none}"
if [[ ! $lattice_dir && -e $mini/dev.lattices.tar.xz && -e $mini/test.lattices.tar.xz ]]; then
  lattice_dir=$raw/lattices lattice_case=upper
fi
# pocketsphinx's am + 9.5 lm - 0.63 words (mini/README.md), its own LM at weight 1
[[ $mini != mini || $asr ]] || : "${first_pass:=am=0.10526 lm=1 words=-0.06627}"
lm_conf=conf lm_size=2000     # of LMs over subwords
word_conf=conf/word word_size= # and over words: all that occur twice

get_corpus() {
  local more=({dev,test}.nbest.jsonl {dev,test}.lattices.tar.xz)
  [[ ! $asr ]] || more=()
  python3 ../../utils/unpack.py "$mini" "$raw" {train,valid}.txt "${more[@]}"
}
finish_sets() { :; }
