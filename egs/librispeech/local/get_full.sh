#!/usr/bin/env bash
# get_full.sh DIR [URL [CHECKSUMS]]: fetch LibriSpeech's language-model text (OpenSLR 11) and the
# transcripts of its dev and test sets (OpenSLR 12) from URL into DIR: librispeech-lm-norm.txt.gz
# and SET.text. What is there already is not fetched again. CHECKSUMS (`SHA-256  path`): the
# publisher's files as torchaudio and TensorFlow Datasets know them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$1 url=${2:-https://www.openslr.org/resources} sums=${3:-$here/full.sha256}

mkdir -p "$dir"
while read -r sha256 path; do
  archive=$dir/${path##*/}
  text=${archive%.tar.gz}.text
  [[ ! -e $text ]] || continue
  python3 "$here/../../../utils/fetch.py" "$url/$path" "$archive" "$sha256"
  if [[ $archive = *.tar.gz ]]; then
    python3 "$here/transcripts.py" "$archive" "$text"
    rm "$archive" # the rest of it is speech, which nothing here needs
  fi
done <"$sums"
