"""benchmarks/engines.py compares the engines that are installed, and says which are not."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks/engines.py"
OPTIONS = "--lm 1x16x700 --hypotheses 12 --batch 8 --turns 1 --threads 1"


def test_table_has_a_row_an_engine(tmp_path, monkeypatch):
    for name in ("onnx", "onnxruntime"):
        pytest.importorskip(name, reason=f"needs the package {name}")
    (tmp_path / "openvino.py").write_text("raise ImportError('no', name='openvino')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    command = [sys.executable, PROGRAM, *OPTIONS.split(), "--only", "ONNX Runtime", "OpenVINO"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    table = [line for line in done.stdout.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    (head, _, *engines) = rows
    assert head[2:] == ["1 thread: ms alone", "1 thread: best hyp./s (batch)", "sums within"]
    found = {(row[0].split()[0], row[1]): row[2:] for row in engines}
    assert set(found) == {
        ("lmtools,", "float32"), ("ONNX", "float32"),
        ("OpenVINO", "float32"), ("OpenVINO", "bfloat16"),
    }  # fmt: skip
    for (name, precision), (alone, best, within) in found.items():
        if name == "OpenVINO":
            assert alone == "skipped: needs openvino"
            continue
        assert float(alone) > 0
        assert float(best.split()[0].replace(",", "")) > 0
        assert float(within) < (1e-3 if precision == "float32" else 5)
