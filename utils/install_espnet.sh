#!/usr/bin/env bash
# Installs ESPnet beside lmtools: what `python -m lmtools.bridges.espnet` needs where no ESPnet is yet.
# Usage: utils/install_espnet.sh [PREFIX]    (default: tools/espnet; the Python is PREFIX/bin/python)
# PYTHON=... names the Python that has lmtools, 3.10 to 3.12 (default: .venv/bin/python of `make
# setup`). PREFIX sees its packages, torch among them, and holds only what ESPnet needs besides.
# PIP_FLAGS=... goes to pip. Running it again goes on where it was stopped; where all is there it
# only looks whether ESPnet starts. PREFIX/failed says what went wrong the last time.
set -euo pipefail

# These come without what they ask for: ESPnet would replace torch and SentencePiece by older ones.
alone=(torchaudio==2.11.0 espnet==202511 torch_complex==0.4.4 espnet_tts_frontend==0.0.4)
# What ESPnet's ASR and LM programs import of all that.
needed=(typeguard==4.6.0 humanfriendly==10.0 configargparse==1.9.0 librosa==0.11.0 soundfile==0.14.0
  kaldiio==2.18.1 editdistance==0.8.1 opt-einsum==3.4.0 einops==0.8.2 hydra-core==1.3.8
  nltk==3.10.4 h5py==3.16.0 jamo==0.4.1 jaconv==0.5.0 unidecode==1.4.0 inflect==7.6.0
  espnet-g2p-en==2.1.0.post1 ci_sdr==0.0.2 fast-bss-eval==0.1.4 asteroid_filterbanks==0.4.0
  setuptools==80.9.0)
root=$(cd "$(dirname "$0")/.." && pwd)
prefix=${1:-$root/tools/espnet}
python=${PYTHON:-$root/.venv/bin/python}
stamp=$prefix/installed
log=$prefix/install.log

fail() {
  echo "install_espnet.sh: $*" | tee "$prefix/failed" >&2
  exit 1
}

fetch() {
  # shellcheck disable=SC2086  # PIP_FLAGS holds several options
  "$prefix/bin/python" -m pip install --quiet --disable-pip-version-check ${PIP_FLAGS:-} "$@" \
    >>"$log" 2>&1 || fail "pip failed: $(grep -i error "$log" | tail -n 1); $log has all"
}

mkdir -p "$prefix"
rm -f "$prefix/failed"
"$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' ||
  fail "$python is not a Python of 3.10 to 3.12; name one: PYTHON=python3.11"
"$python" -c 'import lmtools' 2>/dev/null || fail "$python has no lmtools; run make setup first"

versions="$python $("$python" -V) ${alone[*]} ${needed[*]}"
if [ "$(cat "$stamp" 2>/dev/null)" != "$versions" ]; then
  echo "install_espnet.sh: installing ESPnet ${alone[1]#*==} into $prefix (340 MB, a minute)"
  : >"$log"
  "$python" -m venv --without-pip "$prefix" >>"$log" ||
    fail "$python cannot make environments (Debian: apt-get install python3-venv)"
  "$prefix/bin/python" - "$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" <<'END'
import pathlib, sys, sysconfig
line = f"import site; site.addsitedir({sys.argv[1]!r})\n"
pathlib.Path(sysconfig.get_path("purelib"), "beside.pth").write_text(line)
END
  fetch "${needed[@]}"
  fetch --no-deps "${alone[@]}"
  # Its compiled parts belong to another torch and would not load; ESPnet gets along without.
  rm -f "$prefix"/lib/python3.*/site-packages/torchaudio/lib/*.so
  echo "$versions" >"$stamp"
fi
"$prefix/bin/python" -c 'import espnet2.bin.asr_train, espnet2.bin.asr_inference
import lmtools.bridges.espnet.plugin' >>"$log" 2>&1 ||
  fail "ESPnet does not start: $(tail -n 1 "$log"); $log has all"
echo "install_espnet.sh: $prefix/bin/python has ESPnet and lmtools"
