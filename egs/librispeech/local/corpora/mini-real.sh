# Real speech in the repository: Whisper's lists of LibriSpeech, ten novels (mini-real/README.md);
# LMs take as many updates as on mini, or nearly, so about its time.
# shellcheck shell=bash disable=SC2034,SC2154
source=${mini%mini}mini-real sets=(dev test) decoded=(dev test)
: "${nbest_dir:=$raw}" "${depth:=20}" "${order:=4}" "${mixtures:=none}" "${train_opts:=steps=2200}"
lm_conf=conf lm_size=2000
word_conf=conf/word word_size=

get_corpus() {
  python3 ../../utils/unpack.py "$source" "$raw" {train,valid}.txt {dev,test}.nbest.jsonl
}
finish_sets() { :; }
