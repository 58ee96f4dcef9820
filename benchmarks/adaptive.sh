#!/usr/bin/env bash
# Training through the adaptive softmax of lmtools, of torch and of fairseq-fixed: the same states and targets, one process, in turns.
#   benchmarks/adaptive.sh [--size 200000] [--cutoffs 4000 20000 100000] [--turns 9] [--threads 1] ...
set -euo pipefail
source "$(dirname "$0")/fairseq.sh"
exec "$venv/bin/python" "$here/adaptive_turns.py" "$@"
