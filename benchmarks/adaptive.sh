#!/usr/bin/env bash
# Training through the adaptive softmax of lmtools, of torch and of fairseq-fixed: the same states and targets, one process, in turns.
# Makes its own virtual environment (benchmarks/venv-fairseq), as fairseq-fixed brings hydra and is compiled.
#   benchmarks/adaptive.sh [--size 200000] [--cutoffs 4000 20000 100000] [--turns 9] [--threads 1] ...
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/venv-fairseq
if [[ ! -x $venv/bin/python ]]; then
  "${PYTHON:-python3}" -m venv "$venv"
fi
if ! "$venv/bin/python" -c 'import fairseq, lmtools' 2>/dev/null; then
  "$venv/bin/pip" install -q -c "$here/../utils/constraints.txt" torch==2.13.0 numpy
  "$venv/bin/pip" install -q -c "$here/../utils/constraints.txt" torch==2.13.0 fairseq-fixed==0.12.3.1 -e "$here/.."
fi
exec "$venv/bin/python" "$here/adaptive_turns.py" "$@"
