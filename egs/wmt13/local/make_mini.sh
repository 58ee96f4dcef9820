#!/usr/bin/env bash
# Builds the mini corpus in egs/wmt13/mini from Debian packages of translated manuals: sentence
# pairs, a small Transformer trained on them, and its N-best lists of held-out sentences. What it
# made is in the repository: run this only to change the corpus.
#   local/make_mini.sh [WORK_DIR [OUT_DIR]]      about two hours on 2 cores; a second run goes on
# where the first one stopped
# PYTHON=... chooses the interpreter (default python3), with lmtools.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${1:-$here/../exp/make_mini}
out=${2:-$here/../mini}
python=${PYTHON:-python3}

packages=(debian-handbook gnome-user-docs libreoffice-help-{de,fr,en-us} gimp-help-{de,fr,en}
  installation-guide-amd64 aptitude-doc-{fr,en} debian-faq{,-de,-fr} debian-reference-{de,fr,en}
  developers-reference{,-de,-fr})

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
for package in "${packages[@]}"; do
  if [[ ! -d $work/packages/$package ]]; then
    (cd "$work" && apt-get download -q "$package" &&
      dpkg-deb -x "$package"_*.deb "packages/$package.tmp")
    mv "$work/packages/$package"{.tmp,}
  fi
done

[[ -e $work/pairs/en.tsv ]] || "$python" "$here/mini_pairs.py" "$work/packages" "$work/pairs"
"$python" "$here/mini_sets.py" "$work/pairs" "$work/sets"

# One model for both languages, whose pairs share their English side and a vocabulary
for language in de fr; do
  for set in train dev test; do
    pairs=$work/sets/$set.$language.tsv
    [[ $set != train ]] || pairs=$work/sets/$language.tsv
    "$python" "$here/prepare.py" pairs "$pairs" "$work/sets/$set.$language"{,.en}
  done
done
train=("$work/sets/train".{de,fr}) nmt=$work/nmt
[[ -e $nmt/subword ]] || "$python" -m lmtools subword --text "${train[@]}" "${train[@]/%/.en}" \
  --type unigram --vocab-size 6000 --normaliser cased --out "$nmt/subword"
[[ -e $nmt/train.bin ]] || "$python" -m lmtools corpus --source "${train[@]}" \
  --text "${train[@]/%/.en}" --subword "$nmt/subword" --out "$nmt/train.bin"
[[ -e $nmt/valid.bin ]] || "$python" -m lmtools corpus --source "$work/sets/dev.de" \
  --text "$work/sets/dev.de.en" --subword "$nmt/subword" --out "$nmt/valid.bin"
"$python" -m lmtools train --conf "$here/mini_translator.yaml" --train "$nmt/train.bin" \
  --valid "$nmt/valid.bin" --out "$nmt/lm"
for language in de fr; do
  for set in dev test; do
    list=$language-en.$set.nbest.jsonl
    [[ -e $work/$list ]] || "$python" -m lmtools translate --lm "$nmt/lm" \
      --source "$work/sets/$set.$language" --ref "$work/sets/$set.$language.en" --prefix "$set-" \
      --out "$work/$list"
    xz -9e -c "$work/$list" >"$out/$list.xz"
  done
done
for part in train valid; do
  xz -9e -c "$work/sets/$part.txt" >"$out/$part.txt.xz"
done
(cd "$out" && sha256sum -- *.xz >SHA256SUMS)
du -ch "$out"/*.xz | tail -n 1
