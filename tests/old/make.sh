#!/usr/bin/env bash
# Writes tests/old/VERSION by the lmtools of a commit of this repository: what tests/old/test_old.py
# reads. Usage: tests/old/make.sh VERSION COMMIT; 0.4.0 is 1203ca13, 0.5.0 c7fdcae4, 0.7.0 844d3ec6,
# 1.0.0 the commit "Version 1.0.0"
# PYTHON names a Python that has what lmtools needs.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
version=$1 commit=$2 home=$root/tests/old/$1
python=${PYTHON:-$root/.venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git -C "$root" archive "$commit" | tar -x -C "$work"
export PYTHONPATH=$work OMP_NUM_THREADS=1 LMTOOLS_CACHE=$work/cache
rm -rf "$home"
mkdir -p "$home"
cd "$home"
cp ../dev.jsonl ../test.jsonl .
"$python" -P - "$version" "$work" <<'END'
import pathlib, sys

import lmtools
from lmtools.cli import main

version, work = sys.argv[1], pathlib.Path(sys.argv[2])
assert lmtools.__version__ == version, lmtools.__version__


def run(line):
    if main(line.split()):
        sys.exit(f"make.sh: fails: lmtools {line}")


text, conf = work / "text", work / "conf.yaml"
text.write_text(pathlib.Path("../text").read_text() * 8)
run(f"ngram --text {text} --order 2 --out lm/ngram")
run(f"subword --text {text} --type bpe --vocab-size 40 --out bpe")
run(f"corpus --text {text} --subword bpe --out text.bin")
transformer = "arch: {layers: 1, dim: 8, heads: 2, ffn: 16, positions: 32}"
models = {
    "causal": f"objective: causal\n{transformer}",
    "masked": f"objective: masked\n{transformer}",
    "tta": f"objective: autoencoding\n{transformer}",
    "lstm": "objective: causal\narch: {layers: 1, dim: 8, units: 8}",
}
for model, settings in models.items():
    conf.write_text(f"model: {model}\n{settings}\nepochs: 2\n")
    run(f"train --conf {conf} --train text.bin --valid text.bin --out lm/{model}")
columns = {"dev": "", "test": ""}
for model in ("ngram", *models):
    for name in columns:
        run(f"score --nbest {name}.jsonl --lm lm/{model} --out {model}.{name}.scores")
        columns[name] += f" {model}={model}.{name}.scores"
run(f"tune --nbest dev.jsonl --scores{columns['dev']} --metric wer --out weights.json")
run(
    f"rescore --nbest test.jsonl --scores{columns['test']} --weights weights.json --out test.txt"
)
END
find lm -name 'checkpoint*' -delete
