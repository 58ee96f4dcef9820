#!/usr/bin/env bash
# get_full.sh DIR PAIR TEXT URL FILE...: newstest2012 and newstest2013 of a pair, de-en or fr-en, as
# DIR/PAIR.{dev,test}.foreign and .english, from sacreBLEU's data sets, which sacreBLEU fetches and
# checks itself; each FILE from URL into DIR, or, if TEXT is not empty, train.txt and valid.txt of
# that directory. What is there already is not fetched again, an interrupted download goes on.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$1 pair=$2 text=$3 url=$4

# echo_side SET SIDE FILE: one side, src or ref, of one of sacreBLEU's data sets
echo_side() {
  [[ ! -s $3 ]] || return 0
  sacrebleu --test-set "$1" --language-pair "$pair" --echo "$2" >"$3.tmp"
  mv "$3.tmp" "$3"
}

mkdir -p "$dir"
if ! command -v sacrebleu >/dev/null; then
  echo "get_full.sh: no program sacrebleu; it comes with lmtools: make its environment active" >&2
  exit 1
fi
for set in dev=wmt12 test=wmt13; do
  echo_side "${set#*=}" src "$dir/$pair.${set%=*}.foreign"
  echo_side "${set#*=}" ref "$dir/$pair.${set%=*}.english"
done
if [[ $text ]]; then
  python3 "$here/../../../utils/unpack.py" "$text" "$dir" train.txt valid.txt
else
  for file in "${@:5}"; do
    python3 "$here/../../../utils/fetch.py" "$url/$file" "$dir/$file"
  done
fi
