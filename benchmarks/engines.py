"""How fast a left-to-right model scores hypotheses here and, exported, in other programs:
CTranslate2, ONNX Runtime, OpenVINO, minicons and transformers' own classes. Prints a table.

    python benchmarks/engines.py --lm DIR [--hypotheses 400] [--turns 3] [--threads 1 2]

`--lm` is a directory of `lmtools train`, or LAYERSxDIMxWORDS: a model of random weights. The others
load what `lmtools export` writes. Each engine is a process of its own that keeps the model; they
take turns, and the least time of each call counts: processor time where one thread computes, which
other work on the machine disturbs least. All give the sum of log-probabilities of the
same distinct hypotheses. At batch 1 a call has one. Of larger batches the others are told the size,
and the hypotheses are sorted by length for them; `lmtools` gets all at once, list by list, and
makes its own. With several threads the others run both ways, all threads in one call and as many
calls at a time of one thread each, and the better counts. An engine that is not installed is a row
`skipped`; one whose sums are not ours has no rates. benchmarks/engines.sh installs all.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from engine_workers import ENGINES, Engine
from measures.machine import describe_machine

import lmtools
from lmtools.base.doors import load
from lmtools.base.errors import UserError
from lmtools.bridges.export import FORMS
from lmtools.models.checkpoint import load_model, prepare_directory, save_weights
from lmtools.models.lm import LanguageModel
from lmtools.models.settings import Settings
from lmtools.text.normaliser import Normaliser
from lmtools.text.subword.lists import Word

LISTS = Path(__file__).parents[1] / "egs/librispeech/mini/test.nbest.jsonl.xz"
CLOSE = 1e-3  # nats that a sum in float32 may differ
ROUNDED = 0.02  # the share of a sum that rounding may change; a wrong mask changes more


class Worker:
    """The process of an engine; `seconds` has the least of each call by batch size."""

    def __init__(self, engine: Engine, home: Path, threads: int, calls: int):
        self.engine = engine
        number = ENGINES.index(engine)
        program = Path(__file__).with_name("engine_workers.py")
        command = [sys.executable, program, number, home, threads, calls]
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"},
        )  # fmt: skip
        self.seconds: dict[int, np.ndarray] = {}
        self.sums: dict[int, np.ndarray] = {}
        self.version: str | None = None
        self.skipped: str | None = None

    def read(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            return {"skipped": f"its process ended with status {self.process.wait()}"}
        return json.loads(line)

    def measure(self, size: int) -> None:
        """A turn of all texts in calls of `size`."""
        if not self.version and not self.skipped:
            said = self.read()
            self.skipped, self.version = said.get("skipped"), said.get("version")
        if self.skipped:
            return
        self.process.stdin.write(f"{size}\n")
        self.process.stdin.flush()
        said = self.read()
        if "skipped" in said:
            self.skipped = said["skipped"]
            return
        seconds, size = np.array(said["seconds"]), said["size"]
        self.seconds[size] = np.minimum(self.seconds.get(size, np.inf), seconds)
        self.sums[size] = np.array(said["sums"])

    def close(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def measure_engines(
    engines: Sequence[Engine],
    home: Path,
    threads: int,
    sizes: Sequence[int],
    turns: int,
    lacking: Mapping[str, str],
) -> list[dict]:
    """A row an engine at so many threads, the first of them the reference; `lacking` says which
    forms could not be written.
    """
    able = [engine for engine in engines if engine.form not in lacking]
    workers = [Worker(engine, home, *way) for engine in able for way in engine.ways(threads)]
    try:
        for turn in range(turns + 1):  # the first warms up, and counts where it is the fastest
            for size in sizes:
                for worker in workers:
                    if worker.engine.package or size in sizes[:2]:  # ours makes its own batches
                        worker.measure(size)
            print(f"{threads} thread(s): turn {turn} of {turns}", file=sys.stderr)
    finally:
        for worker in workers:
            worker.close()
    if workers[0].skipped:
        raise UserError(f"{engines[0].name}: {workers[0].skipped}")
    reference = workers[0].sums[1]
    rows = []
    for engine in engines:
        own = [worker for worker in workers if worker.engine is engine]
        rows.append({"engine": engine, "skipped": lacking.get(engine.form)})
        if own:
            rows[-1] |= summarise(own, reference)
    return rows


def summarise(workers: list[Worker], reference: np.ndarray) -> dict:
    """The milliseconds of a text alone, the best rate and its batch, and how far the sums are from
    `reference`.
    """
    if reason := next((one.skipped for one in workers if one.skipped), None):
        return {"skipped": reason}
    row: dict = {}
    rates = [
        (len(reference) / seconds.sum(), size)
        for worker in workers
        for size, seconds in worker.seconds.items()
    ]
    row["rate"], row["batch"] = max(rates)
    row["milliseconds"] = 1e3 * workers[0].seconds[1].mean()
    every = np.stack([sums for worker in workers for sums in worker.sums.values()])
    row["difference"] = float(np.abs(every - reference).max())
    exact = workers[0].engine.precision == "float32"
    row["limit"] = CLOSE if exact else ROUNDED * float(np.abs(reference).max())
    row["version"] = workers[0].version
    return row


def print_table(found: dict[int, list[dict]], count: int) -> bool:
    """Print a row an engine; whether all sums are close enough."""
    names = [f"{t} thread{'s' if t > 1 else ''}: " for t in found]
    columns = [f"{name}{what}" for name in names for what in ("ms alone", "best hyp./s (batch)")]
    print(f"\n| engine | precision | {' | '.join(columns)} | sums within |")
    print("|" + "---|" * (len(columns) + 3))
    good = True
    for rows in zip(*found.values(), strict=True):
        engine, cells, within = rows[0]["engine"], [], 0.0
        for row in rows:
            if row.get("skipped"):
                cells += [f"skipped: {row['skipped']}", ""]
            elif not row["difference"] <= row["limit"]:
                good = False
                cells += [f"sums differ by {row['difference']:.2g}", ""]
            else:
                batch = row["batch"] if row["batch"] != count else "all"
                cells += [f"{row['milliseconds']:.2f}", f"{row['rate']:,.0f} ({batch})"]
                within = max(within, row["difference"])
        known = rows[0].get("version")
        title = f"{engine.name} {known}" if known and engine.package else engine.name
        sums = f"{within:.1g}" if known else ""
        print(f"| {title} | {engine.precision} | {' | '.join(cells)} | {sums} |")
    return good


def make_random(directory: Path, size: str, texts: Sequence[str]) -> None:
    """Write a causal model of LAYERSxDIMxWORDS: random weights, the words of the texts and others
    that no text has.
    """
    layers, dim, words = map(int, size.split("x"))
    counts = dict.fromkeys((word for text in texts for word in text.lower().split()), 2)
    counts |= {f"unused{i}": 1 for i in range(words - len(counts))}
    subword = Word(Word.listing(counts, words), Normaliser("lower"))
    arch = {"layers": layers, "dim": dim, "heads": max(1, dim // 64), "ffn": 4 * dim}
    settings = Settings("causal", "causal", arch={**arch, "positions": 128}, seed=0)
    torch.manual_seed(0)
    lm = LanguageModel(settings, subword.size)
    with torch.no_grad():
        for parameter in lm.parameters():  # far from even probabilities
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    directory.mkdir()
    prepare_directory(directory, settings, subword)
    save_weights(directory, lm)


def place_model(lm: str, home: Path, texts: Sequence[str]) -> None:
    """Make `home`/lm the model of a directory or of LAYERSxDIMxWORDS."""
    if re.fullmatch(r"\d+x\d+x\d+", lm):
        make_random(home / "lm", lm, texts)
    else:
        (home / "lm").symlink_to(Path(lm).resolve())


def write_exports(home: Path, engines: Sequence[Engine]) -> dict[str, str]:
    """Export the model of `home`/lm for these; the forms that could not be written, and why."""
    lacking = {}
    for form in sorted({engine.form for engine in engines if engine.form}):
        try:
            load(FORMS[form][0])(str(home / "lm"), str(home / form))
        except UserError as error:
            lacking[form] = str(error)
    return lacking


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lm", required=True, metavar="DIR", help="or LAYERSxDIMxWORDS")
    parser.add_argument("--nbest", default=LISTS, metavar="F", help="lists of the hypotheses")
    parser.add_argument("--hypotheses", type=int, default=400, metavar="N")
    parser.add_argument("--batch", type=int, nargs="+", default=[8, 32, 128], metavar="N")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these engines beside the first")
    parser.add_argument("--turns", type=int, default=3, metavar="N")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], metavar="N")
    args = parser.parse_args()
    every = dict.fromkeys(hyp.text for nbest in lmtools.read(args.nbest) for hyp in nbest.hyps)
    texts = list(every)[: args.hypotheses]
    sizes = sorted({1, *args.batch})
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        place_model(args.lm, home, texts)
        lm, subword = load_model(home / "lm")
        tokens = np.mean([len(ids) for ids in subword.encode_batch(texts)])
        (home / "texts.json").write_text(json.dumps(texts))
        engines = [
            one for one in ENGINES if not args.only or one.name in (ENGINES[0].name, *args.only)
        ]
        lacking = write_exports(home, engines)
        found = {
            threads: measure_engines(engines, home, threads, sizes, args.turns, lacking)
            for threads in args.threads
        }
    parameters = sum(parameter.numel() for parameter in lm.parameters())
    print(
        f"\n{describe_machine(torch.device('cpu'))}; {args.lm}: {lm.settings.model},"
        f" {parameters:,} parameters, {subword.size} tokens; {len(texts)} hypotheses of"
        f" {tokens:.1f} tokens; least of {args.turns + 1} turns"
    )
    if not print_table(found, len(texts)):
        sys.exit("error: an engine's sums are not ours")


if __name__ == "__main__":
    main()
