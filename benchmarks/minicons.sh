#!/usr/bin/env bash
# Pseudo-log-likelihoods of 500 hypotheses by minicons and by lmtools: the same masked model, one process, taking turns.
# Makes its own virtual environment (benchmarks/venv-minicons), as minicons needs transformers below 5.
#   benchmarks/minicons.sh [--hypotheses 500] [--turns 3] [--threads 1] ...
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/venv-minicons
if [[ ! -x $venv/bin/python ]]; then
  "${PYTHON:-python3}" -m venv "$venv"
fi
"$venv/bin/python" -c 'import minicons, lmtools' 2>/dev/null ||
  "$venv/bin/pip" install -q -c "$here/../utils/constraints.txt" torch minicons==0.3.39 -e "$here/..[hf]"
exec "$venv/bin/python" "$here/minicons_turns.py" "$@"
