"""What one text by LM.score costs, in turns with ONNX Runtime on the exported model, in one
process and one thread, by processor time, which other work on the machine disturbs least.

    python benchmarks/one_text.py --lm DIR|3x128x2000 [--texts 150] [--turns 5]

Each way reads texts, cuts them into pieces and gives the sums of log-probability. Prints the
milliseconds of a text in the best turn and the median of the ratios to ONNX Runtime of all turns; a
way that the processor lacks is `skipped`.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from engine_workers import Load, load_onnxruntime
from engines import LISTS, place_model

import lmtools
from lmtools.base.doors import load
from lmtools.base.errors import UserError
from lmtools.bridges.export import FORMS

PEER = "ONNX Runtime float32"
OURS = {  # engine, precision and rows that are asked for
    "LM.score as it is": {},
    "torch float32": {"engine": "torch"},
    "torch float32, rows=1": {"engine": "torch", "rows": 1},
    "prepared float32, rows=1": {"engine": "prepared", "rows": 1},
    "prepared bfloat16, rows=1": {"precision": "bfloat16", "rows": 1},
    "prepared int8, rows=1": {"precision": "int8", "rows": 1},
    "onnx int8": {"engine": "onnx", "precision": "int8"},
}


def load_ways(home: Path) -> dict:
    """Return functions of a list of one text by name."""
    load(FORMS["onnx"][0])(str(home / "lm"), str(home / "onnx"))
    ways = {PEER: load_onnxruntime(Load(home, "float32", 1, 1))}
    for name, asked in OURS.items():
        try:
            ways[name] = lmtools.load(home / "lm", threads=1, device="cpu", **asked).score
        except UserError as error:  # what this processor does not compute
            print(f"skipped: {name}: {error}")
    return ways


def measure(score, texts) -> tuple[float, np.ndarray]:
    """Return the milliseconds of a text, and the sums."""
    begin = time.process_time()
    sums = [score([text])[0] for text in texts]
    return 1e3 * (time.process_time() - begin) / len(texts), np.array(sums)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lm", default="3x128x2000", metavar="DIR", help="or LAYERSxDIMxWORDS")
    parser.add_argument("--texts", type=int, default=150, metavar="N")
    parser.add_argument("--turns", type=int, default=5, metavar="N")
    args = parser.parse_args()
    torch.set_num_threads(1)
    texts = [hyp.text for nbest in lmtools.read(LISTS) for hyp in nbest.hyps]
    texts = list(dict.fromkeys(texts))
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        place_model(args.lm, home, texts)
        ways, texts = load_ways(home), texts[: args.texts]
        sums = {name: measure(score, texts)[1] for name, score in ways.items()}  # warms up
        turns = [
            {name: measure(score, texts)[0] for name, score in ways.items()}
            for _ in range(args.turns)
        ]
    print("| way | ms a text | times ONNX Runtime | sums within |\n|---|---|---|---|")
    for name in ways:
        ratio = statistics.median(turn[name] / turn[PEER] for turn in turns)
        within = np.abs(sums[name] - sums[PEER]).max()
        print(f"| {name} | {min(turn[name] for turn in turns):.2f} | {ratio:.2f} | {within:.1g} |")


if __name__ == "__main__":
    main()
