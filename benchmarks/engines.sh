#!/usr/bin/env bash
# Hypotheses a second of a causal model by lmtools, ONNX Runtime, OpenVINO, minicons and transformers, in turns.
# Makes its own virtual environment (benchmarks/venv-engines), as minicons needs transformers below 5.
#   benchmarks/engines.sh --lm DIR|3x512x30000 [--hypotheses 400] [--batch 8 32 128] [--turns 3] [--threads 1 2]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$here/venv-engines
if [[ ! -x $venv/bin/python ]]; then
  "${PYTHON:-python3}" -m venv "$venv"
fi
"$venv/bin/python" -c 'import lmtools, onnx, onnxruntime, openvino, minicons' 2>/dev/null ||
  "$venv/bin/pip" install -q -c "$here/../utils/constraints.txt" torch minicons==0.3.39 openvino==2026.4.1 onnxruntime -e "$here/..[hf,onnx]"
exec "$venv/bin/python" "$here/engines.py" "$@"
