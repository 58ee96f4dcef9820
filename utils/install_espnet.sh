#!/usr/bin/env bash
# Installs ESPnet, with lmtools beside it, into an environment of its own: what `python -m
# lmtools.espnet` needs where no ESPnet is yet. Usage: utils/install_espnet.sh [PREFIX]
# (default: tools/espnet; the Python is PREFIX/bin/python) PYTHON=... names the Python to make it
# from, 3.10 to 3.12. PIP_FLAGS=... goes to pip, as in PIP_FLAGS="--extra-index-url
# https://download.pytorch.org/whl/cpu" for a torch without CUDA on Linux. Running it again goes on
# where it was stopped, and does nothing when all is there.
set -euo pipefail

torch=2.13.0
# These come without what they ask for: ESPnet would replace torch by an older one, and pins
# versions that newer Pythons lack.
alone=(torchaudio==2.11.0 espnet==202511 torch_complex==0.4.4 espnet_tts_frontend==0.0.4)
# What ESPnet's ASR and LM programs import of all that.
needed=(typeguard==4.6.0 humanfriendly==10.0 configargparse==1.9.0 librosa==0.11.0 soundfile==0.14.0
  kaldiio==2.18.1 editdistance==0.8.1 opt-einsum==3.4.0 einops==0.8.2 hydra-core==1.3.8
  lightning==2.6.6 nltk==3.10.4 h5py==3.16.0 jamo==0.4.1 jaconv==0.5.0 unidecode==1.4.0
  inflect==7.6.0 espnet-g2p-en==2.1.0.post1 ci_sdr==0.0.2 fast-bss-eval==0.1.4
  asteroid_filterbanks==0.4.0 setuptools==80.9.0)
root=$(cd "$(dirname "$0")/.." && pwd)
prefix=${1:-$root/tools/espnet}
python=${PYTHON:-$(command -v "$root/.venv/bin/python" || echo python3)}
stamp=$prefix/installed
versions="$torch ${alone[*]} ${needed[*]}"

fail() { echo "install_espnet.sh: $*" >&2; exit 1; }

if [ "$(cat "$stamp" 2>/dev/null)" = "$versions" ]; then
  echo "install_espnet.sh: $prefix/bin/python has ESPnet"
  exit 0
fi

"$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' ||
  fail "$python is not a Python of 3.10 to 3.12; name one: PYTHON=python3.11"
mkdir -p "$prefix"
log=$prefix/install.log
echo "install_espnet.sh: installing ESPnet ${alone[1]#*==} into $prefix (1.7 GB, 5.4 GB\
 where torch comes with CUDA; minutes)"

fetch() {
  # shellcheck disable=SC2086  # PIP_FLAGS holds several options
  "$prefix/bin/python" -m pip install --quiet --disable-pip-version-check \
    ${PIP_FLAGS:-} "$@" >>"$log" 2>&1 ||
    { grep -i error "$log" | tail -n 3 >&2
      fail "pip failed; $log tells why. Run this again to go on"; }
}

: >"$log"
[ -x "$prefix/bin/pip" ] || "$python" -m venv --clear "$prefix" ||
  fail "$python cannot make environments (Debian: apt-get install python3-venv)"
: >"$log"
fetch "torch==$torch" "${needed[@]}" -e "$root"
fetch --no-deps "${alone[@]}"
# Its compiled parts belong to another torch and would not load; ESPnet gets along without.
rm -f "$prefix"/lib/python3.*/site-packages/torchaudio/lib/*.so
"$prefix/bin/python" -c 'import espnet2.bin.asr_train, espnet2.bin.asr_inference
import lmtools.espnet.plugin' >>"$log" 2>&1 ||
  { tail -n 1 "$log" >&2; fail "ESPnet does not start; $log tells why"; }
echo "$versions" >"$stamp"
echo "install_espnet.sh: $prefix/bin/python has ESPnet and lmtools"
