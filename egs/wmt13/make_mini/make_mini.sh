#!/usr/bin/env bash
# Builds the mini corpus in egs/wmt13/mini from Debian packages of translated manuals: sentence
# pairs, a small Transformer trained on them, and its N-best lists of held-out sentences. What it
# made is in the repository: run this only to change the corpus.
#   make_mini/make_mini.sh [WORK_DIR [OUT_DIR]]      about an hour; a second run goes on where the first
# one stopped
# PYTHON=... chooses the interpreter (default python3), with lmtools.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${1:-$here/../exp/make_mini}
out=${2:-$here/../mini}
python=${PYTHON:-python3}

packages=(debian-handbook gnome-user-docs installation-guide-amd64 aptitude-doc-{fr,en}
  debian-faq{,-de,-fr} debian-reference-{de,fr,en} developers-reference{,-de,-fr})
english=(harden-doc debian-policy debian-kernel-handbook apache2-doc exim4-doc-html postfix-doc
  bind9-doc libvirt-doc) # only their English is read

pack() { # pack FILE: compressed as small as xz makes text, to standard output
  xz --lzma2=preset=9e,lc=4,pb=0 -c "$1"
}

need() { # need PROGRAM REMEDY
  command -v "$1" >/dev/null || { echo "make_mini.sh: $1 not found; $2" >&2; exit 1; }
}
need apt-get "run it on Debian or Ubuntu"
need dpkg-deb "run it on Debian or Ubuntu"
need xz "apt-get install xz-utils"
"$python" -c 'import lmtools' 2>/dev/null ||
  { echo "make_mini.sh: no lmtools; run make setup" >&2; exit 1; }

mkdir -p "$work/packages" "$out"
work=$(cd "$work" && pwd)
for package in "${packages[@]}" "${english[@]}"; do
  if [[ ! -d $work/packages/$package ]]; then
    (cd "$work" && apt-get download -q "$package" &&
      dpkg-deb -x "$package"_*.deb "packages/$package.tmp")
    mv "$work/packages/$package"{.tmp,}
  fi
done

[[ -e $work/pairs/en.tsv ]] || "$python" "$here/mini_pairs.py" "$work/packages" "$work/pairs"
"$python" "$here/mini_sets.py" "$work/pairs" "$work/sets"

# One model for both languages, whose pairs share their English side and a vocabulary. It learns to
# look at the source from short pairs first: from all at once it became an LM that did not.
for language in de fr; do
  for set in train short dev test; do
    "$python" "$here/../local/prepare.py" pairs "$work/sets/$set.$language.tsv" \
      "$work/sets/$set.$language"{,.en}
  done
done
nmt=$work/nmt init=()
binarise() { # binarise OUT SET.LANGUAGE...
  local out=$1 source=("${@:2}")
  source=("${source[@]/#/$work/sets/}")
  [[ -e $nmt/$out ]] || "$python" -m lmtools corpus --source "${source[@]}" \
    --text "${source[@]/%/.en}" --subword "$nmt/subword" --out "$nmt/$out"
}
train=("$work/sets/train".{de,fr})
[[ -e $nmt/subword ]] || "$python" -m lmtools subword --text "${train[@]}" "${train[@]/%/.en}" \
  --type unigram --vocab-size 6000 --normaliser cased --out "$nmt/subword"
binarise valid.bin dev.de
binarise short.bin short.{de,fr}
binarise train.bin train.{de,fr}
for part in short train; do
  [[ $part = short ]] || init=(--init "$nmt/short")
  "$python" -m lmtools train --conf "$here/mini_translator/$part.yaml" --train "$nmt/$part.bin" \
    --valid "$nmt/valid.bin" "${init[@]}" --out "$nmt/$part"
done
for language in de fr; do
  for set in dev test; do
    list=$language-en.$set.nbest.jsonl
    [[ -e $work/$list ]] || "$python" -m lmtools translate --lm "$nmt/train" \
      --source "$work/sets/$set.$language" --ref "$work/sets/$set.$language.en" --prefix "$set-" \
      --beam 20 --out "$work/$list"
    pack "$work/$list" >"$out/$list.xz"
  done
done
for part in {train,valid}.txt {de,fr}-en.{train,valid}.tsv; do
  pack "$work/sets/$part" >"$out/$part.xz"
done
(cd "$out" && sha256sum -- *.xz >SHA256SUMS)
du -ch "$out"/*.xz | tail -n 1
