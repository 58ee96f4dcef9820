# Switchboard, and Fisher if it is there: transcriptions from the LDC, references with the lists;
# parts of test are sets too.
# shellcheck shell=bash disable=SC2034,SC2154
source=${audio:-$nbest_dir} sets=(dev test) decoded=(dev test) parts=()
[[ $ldc_dir ]] ||
  wrong "--corpus swbd reads the LDC's transcriptions; name their directory with --ldc-dir"
[[ $test_parts = none ]] || read -ra parts <<<"$test_parts"
for part in "${parts[@]}"; do
  [[ $part = [!=]*=?* && $part != @(dev|test|train|valid)=* ]] ||
    wrong "--test-parts has '$part'; it takes NAME=BEGINNING, as in swb=sw"
  sets+=("${part%%=*}")
done
: "${depth:=50}" "${order:=4}"
[[ $mixtures ]] || for name in $lms; do # what the papers interpolate
  [[ $name != @(lstm|causal)* ]] || mixtures+=" $name"
done
lm_conf=../../conf lm_size=30000
word_conf=../../conf word_size=30000

get_corpus() {
  local transcriptions
  read -ra transcriptions <<<"$ldc_dir"
  python3 local/get_swbd.py "$raw" "$source" "${transcriptions[@]}"
}
finish_sets() {
  local part
  for part in "${parts[@]}"; do
    python3 local/split.py "$datadir/test" "$datadir/${part%%=*}" "${part#*=}"
  done
}
