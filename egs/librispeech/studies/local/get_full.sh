#!/usr/bin/env bash
# get_full.sh DIR [URL [AUDIO]]: fetch LibriSpeech's language-model text (OpenSLR 11) and the
# transcripts of its dev and test sets (OpenSLR 12) from URL into DIR: librispeech-lm-norm.txt.gz
# and SET.text; with a directory AUDIO the recordings too, AUDIO/SET. What is there already is not
# fetched again. full.sha256 (`SHA-256  path`): the publisher's files as torchaudio and TensorFlow
# Datasets know them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dir=$1 url=${2:-https://www.openslr.org/resources} audio=${3-}

mkdir -p "$dir"
while read -r sha256 path; do
  archive=$dir/${path##*/}
  set=$(basename "$path" .tar.gz)
  if [[ $archive != *.tar.gz ]]; then
    made=("$archive")
  else
    made=("$dir/$set.text" ${audio:+"$audio/$set"})
  fi
  [[ ! -e ${made[0]} || ! -e ${made[-1]} ]] || continue
  python3 "$here/../../../../utils/fetch.py" "$url/$path" "$archive" "$sha256"
  if [[ $archive = *.tar.gz ]]; then
    python3 "$here/transcripts.py" "$archive" "${made[@]}"
    rm "$archive" # of the rest nothing here needs anything
  fi
done <"$here/full.sha256"
