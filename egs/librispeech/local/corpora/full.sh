# LibriSpeech: text and transcripts are fetched, for --asr recordings too; dev is dev-clean and dev-other.
# shellcheck shell=bash disable=SC2034,SC2154
source=local/full.sha256
decoded=({dev,test}-{clean,other}) sets=(dev "${decoded[@]}")
: "${depth:=50}" "${order:=5}" "${mixtures:=none}"
[[ ! $asr ]] || : "${audio:=$datadir/local/audio}"
lm_conf=../../conf lm_size=30000
word_conf=../../conf word_size=200000

get_corpus() {
  local fetched=
  [[ $audio != "$datadir/local/audio" ]] || fetched=$audio
  local/get_full.sh "$raw" "$openslr" ${fetched:+"$fetched"}
}
finish_sets() {
  local/join.sh "$datadir"/dev{,-clean,-other}
}
