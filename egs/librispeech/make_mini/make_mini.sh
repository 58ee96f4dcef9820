#!/usr/bin/env bash
# Builds the mini corpus in egs/librispeech/mini from packages: text of a public-domain Bible, read
# by synthetic voices, with noise, decoded by pocketsphinx. Its output is in the repository: run
# this only to change the corpus or to see that it comes out the same.
#   make_mini/make_mini.sh [WORK_DIR [OUT_DIR]]      about 25 minutes on 2 cores; a second run goes on
# where the first one stopped
# PYTHON=... chooses the interpreter (default python3), JOBS=... the number of processes (default
# 2).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=${1:-$here/../exp/make_mini}
out=${2:-$here/../mini}
python=${PYTHON:-python3}
jobs=${JOBS:-2}
export PYTHONPATH=$here/../../..${PYTHONPATH:+:$PYTHONPATH}

module=engWEB2015eb
valid=(hosea amos philippians)
dev=(tobit james colossians jonah)
test=(acts wisdom galatians)
declare -A count=([dev]=250 [test]=500)
voices=(slt rms awb kal16 slt rms awb kal16 slt rms awb kal16 espeak)
noises=(0 1 3 5) # thousandths of full scale

need() { # need PROGRAM REMEDY
  command -v "$1" >/dev/null || { echo "make_mini.sh: $1 not found; $2" >&2; exit 1; }
}
need mod2imp "apt-get install libsword-utils"
need flite "apt-get install flite"
need espeak-ng "apt-get install espeak-ng"
need sox "apt-get install sox"
need sha256sum "apt-get install coreutils"
need "$python" "set PYTHON to a Python 3.10+"
"$python" -c 'import numpy' 2>/dev/null ||
  { echo "make_mini.sh: no numpy; pip install numpy" >&2; exit 1; }
"$python" -c 'import pocketsphinx' 2>/dev/null ||
  { echo "make_mini.sh: no pocketsphinx; pip install pocketsphinx==5.1.1" >&2; exit 1; }

mkdir -p "$work" "$out"
mod2imp "$module" >"$work/$module.imp" 2>/dev/null || true
[ -s "$work/$module.imp" ] ||
  { echo "make_mini.sh: no module $module; apt-get install sword-text-web" >&2; exit 1; }

"$python" "$here/mini_text.py" --imp "$work/$module.imp" --out "$out" --work "$work" \
  --valid "${valid[@]}" --dev "${dev[@]}" --test "${test[@]}"

for set in dev test; do
  "$python" "$here/mini_speak.py" --sentences "$work/$set.sentences" --plan "$work/$set.plan" \
    --work "$work/decoded" --count "${count[$set]}" --voices "${voices[@]}" \
    --noises "${noises[@]}" \
    --jobs "$jobs"
  "$python" "$here/mini_nbest.py" --plan "$work/$set.plan" --work "$work/decoded" --jobs "$jobs" \
    --nbest "$out/$set.nbest.jsonl.xz" --lattices "$out/$set.lattices.tar.xz"
done

mapfile -t packages < <(
  dpkg-query -W -f '${Package} ${Version}\n' sword-text-web flite espeak-ng sox 2>/dev/null || true
)
"$python" "$here/mini_figures.py" --out "$out" --work "$work/decoded" --packages "${packages[@]}"
(cd "$out" && sha256sum -- *.xz mini.json >SHA256SUMS)
du -ch "$out"/*.xz | tail -n 1
