#!/usr/bin/env bash
# Gated convolutional language models of lmtools and of fairseq-fixed (fconv_lm): the same text, batches, sizes, optimiser and threads,
# one process, in turns: training and evaluation speed, and perplexity after equal updates.
#   benchmarks/fconv.sh --text wikitext-2.train.txt.xz --valid wikitext-2.valid.txt.xz [--updates 200] [--turns 5] [--threads 1] ...
set -euo pipefail
source "$(dirname "$0")/fairseq.sh"
exec "$venv/bin/python" "$here/fconv_turns.py" "$@"
