# shellcheck shell=bash
# Sourced by what compares with fairseq-fixed: makes its virtual environment (benchmarks/venv-fairseq), as it brings hydra and is compiled.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
venv=$here/venv-fairseq
if [[ ! -x $venv/bin/python ]]; then
  "${PYTHON:-python3}" -m venv "$venv"
fi
if ! "$venv/bin/python" -c 'import fairseq, lmtools' 2>/dev/null; then
  "$venv/bin/pip" install -q -c "$here/../utils/constraints.txt" torch==2.13.0 numpy
  "$venv/bin/pip" install -q -c "$here/../utils/constraints.txt" torch==2.13.0 fairseq-fixed==0.12.3.1 -e "$here/.."
fi
