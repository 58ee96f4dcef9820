#!/usr/bin/env bash
# Builds the mini corpus in egs/wmt13/mini from Debian packages of translated manuals: sentence
# pairs, a small Transformer trained on them, and its N-best lists of held-out sentences. Its output
# is in the repository: run this only to change the corpus or to see how it was made.
#   local/make_mini.sh [WORK_DIR [OUT_DIR]]      about two hours on 2 cores; a second run goes on
# where the first one stopped
# PYTHON=... chooses the interpreter (default python3), with lmtools and transformers.
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
"$python" -c 'import lmtools, transformers' 2>/dev/null ||
  { echo "make_mini.sh: no lmtools or transformers; run make setup" >&2; exit 1; }

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
[[ -e $work/nmt/model.safetensors ]] ||
  OMP_NUM_THREADS=1 "$python" "$here/train_nmt.py" --pairs "$work"/sets/{de,fr}.tsv \
  --valid "$work/sets/dev.de.tsv" --out "$work/nmt" --vocab-size 6000 --layers 3 2 --steps 3200
for language in de fr; do
  for set in dev test; do
    cut -f 1 "$work/sets/$set.$language.tsv" >"$work/sets/$set.$language"
    cut -f 2 "$work/sets/$set.$language.tsv" >"$work/sets/$set.$language.en"
    list=$language-en.$set.nbest.jsonl
    [[ -e $work/$list ]] || "$python" "$here/translate.py" --model "$work/nmt" \
      --source "$work/sets/$set.$language" \
      --reference "$work/sets/$set.$language.en" --prefix "$set-" --out "$work/$list"
    xz -9e -c "$work/$list" >"$out/$list.xz"
  done
done
for part in train valid; do
  xz -9e -c "$work/sets/$part.txt" >"$out/$part.txt.xz"
done
(cd "$out" && sha256sum -- *.xz >SHA256SUMS)
du -ch "$out"/*.xz | tail -n 1
