#!/usr/bin/env bash
# Before a loan, on a CPU: packs into the folder .gpu what calls carry to a machine without a
# network, from what the first stages of recipes left (README.md has their commands).
set -euo pipefail
cd "$(dirname "$0")/../.."
carried=${carried:-.gpu}
books=${books:-egs/librispeech/data/books} # of studies/run_books.sh: text and lists
wikitext=${wikitext-egs/gbw}  # with data/wikitext2 and exp/wikitext2 of run_wikitext2.sh; empty: none
pairs=${pairs-egs/stsb/data}  # with stsb and sick of run_stsb.sh and run_sick.sh; empty: none
sets=${sets:-native/dev native/test non-native/dev non-native/test vosk/dev}
pieces=${pieces:-30000}       # of the vocabulary, learnt from train-10M.txt
python=${python:-3.12}        # of the machine
wheels=${wheels-rapidfuzz whisper-normalizer} # that the machine lacks, by utils/constraints.txt; empty: none
limit=${limit:-64}            # MiB of a call: the repository's files and what is carried

small=$carried/small
mkdir -p "$carried"/{a,b,whl} "$small"/{lists,texts,pairs,gbw}
[[ -e $small/subword ]] ||
  lmtools subword --text "$books/train-10M.txt" --type bpe --vocab-size "$pieces" \
    --normaliser librispeech --out "$small/subword"
cp "$books/valid.txt" "$small/valid.txt"
for set in $sets; do
  cp "$books/$set/nbest.jsonl" "$small/lists/${set//\//-}.jsonl"
  cut -d ' ' -f 2- "$books/$set/text" >"$small/texts/${set//\//-}.txt"
done
for name in ${pairs:+stsb sick}; do
  for part in dev test; do cp "$pairs/$name/$part/pairs.tsv" "$small/pairs/$name-$part.tsv"; done
done
if [[ $wikitext ]]; then
  rm -rf "$small/gbw"
  mkdir -p "$small"/gbw/{data,exp/corpus}
  cp -r "$wikitext"/data/wikitext2/{train,valid,test} "$small/gbw/data"
  cp -r "$wikitext/exp/wikitext2/vocabulary" "$small/gbw/exp/vocabulary"
  cp -r "$wikitext/exp/wikitext2/corpus/words" "$small/gbw/exp/corpus/words"
fi
tar -cJf "$carried/small.tar.xz" -C "$small" .
lines=$(wc -l <"$books/train.txt") # two halves, as one call cannot carry both
head -n $((lines / 2)) "$books/train.txt" | xz -6 -T 0 >"$carried/a/train.txt.xz"
tail -n +$((lines / 2 + 1)) "$books/train.txt" | xz -6 -T 0 >"$carried/b/train.txt.xz"
for name in $wheels; do
  python3 -m pip download -q --no-deps --only-binary=:all: --python-version "$python" \
    --implementation cp --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 \
    --platform manylinux2014_x86_64 -d "$carried/whl" \
    "$(grep -i "^$name==" utils/constraints.txt | cut -d ' ' -f 1)"
done

mib() { du -cm "$@" | tail -n 1 | cut -f 1; }
mapfile -t files < <(git ls-files)
tree=$(mib "${files[@]:-$carried/whl}")
for call in "1 whl" "2 whl small.tar.xz a" "3 whl b" "4 whl"; do
  read -ra parts <<<"$call"
  carry=("${parts[@]:1}")
  size=$((tree + $(mib "${carry[@]/#/$carried/}")))
  echo "call ${parts[0]}: $size MiB of $limit, carries ${carry[*]}"
  ((size <= limit)) || { echo "call ${parts[0]} carries too much" >&2 && exit 1; }
done
