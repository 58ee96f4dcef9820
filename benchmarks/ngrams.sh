#!/usr/bin/env bash
# Time and memory of estimating n-gram models, mixing two, pruning one, and a first answer: lmtools, IRSTLM (Debian's package irstlm) and KenLM's interpolate, one after the other.
# Builds KenLM with interpolate (tools/kenlm-interpolate), which needs Eigen: apt-get install irstlm libeigen3-dev time
#   benchmarks/ngrams.sh --text DIR [--out tools/ngrams] [--words 14000000] [--orders 3 4] [--only estimate mix prune answer] [--nbest lists.jsonl]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
INTERPOLATE=ON "$here/../utils/install_kenlm.sh" "$here/../tools/kenlm-interpolate"
python=${PYTHON:-$(command -v "$here/../.venv/bin/python" || echo python3)}
exec "$python" "$here/ngrams.py" --kenlm "$here/../tools/kenlm-interpolate/bin" "$@"
