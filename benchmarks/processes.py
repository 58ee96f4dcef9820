"""How long whole processes of `lmtools score` take: the first answer of a fresh process, and long
lists by one and two cores.

    python benchmarks/processes.py --lm exp/lm/causal exp/lm/tta [--nbest F] [--times 6] [--turns 3]

For each model prints seconds by the clock, the median, the least and the most of all turns, and the
median of each turn's ratio to one thread:

- `import torch`: Python that imports torch alone, below which no neural model can answer;
- first answer: the first 4 lists;
- one thread, two threads (OMP_NUM_THREADS=2), two processes (--nj 2): all lists, `--times` over,
  each time with a word more, since equal texts are scored once. All scores must be equal;
- two at once: two processes of one thread that share nothing, each with all lists; twice one
  thread's time over theirs is what two cores can do here.

The ways take turns. Run it on an idle machine of two cores and more.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import lmtools

LISTS = Path(__file__).parents[1] / "egs/librispeech/mini/test.nbest.jsonl.xz"
FIRST = 4  # lists of a first answer
ONE = "one thread"


def start(lm: str, nbest: Path, out: Path, threads: int = 1, nj: int = 1) -> subprocess.Popen:
    """Start a process that scores lists."""
    command = [sys.executable, "-m", "lmtools", "score", "--lm", lm, "--nbest", nbest, "--out", out]
    command += ["--cache", "none", "--device", "cpu", "--nj", str(nj)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled modules are kept, as users have it
    return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)


def time_processes(*starters) -> float:
    """Return the seconds until the last of the processes has ended, which are started at once."""
    begin = time.perf_counter()
    for process in [starter() for starter in starters]:
        if process.wait():
            sys.exit("a process failed: score these lists by lmtools score")
    return time.perf_counter() - begin


def lengthen(lists: list, times: int) -> list:
    """Return lists `times` over, each time with a word more."""
    return [
        replace(
            nbest,
            utt=f"{nbest.utt}-{number}",
            hyps=tuple(replace(hyp, text=hyp.text + " the" * number) for hyp in nbest.hyps),
        )
        for number in range(times)
        for nbest in lists
    ]


def measure(lm: str, home: Path, turns: int) -> dict[str, list[float]]:
    """Return the seconds of each way, one a turn."""
    few, whole, out = home / "few.jsonl", home / "lists.jsonl", home / "out"

    def score(nbest, name="some", **ways):
        return lambda: start(lm, nbest, out / name, **ways)

    torch = [sys.executable, "-c", "import torch"]
    ways = {
        "import torch": [lambda: subprocess.Popen(torch)],
        "first answer": [score(few)],
        ONE: [score(whole, "1")],
        "two threads": [score(whole, "threads", threads=2)],
        "two processes": [score(whole, "nj", nj=2)],
        "two at once": [score(whole, "a"), score(whole, "b")],
    }
    time_processes(*ways["first answer"])  # keeps compiled modules, and brings files into memory
    seconds = {name: [] for name in ways}
    for _ in range(turns):
        for name, starters in ways.items():
            seconds[name].append(time_processes(*starters))
    if len({(out / name).read_bytes() for name in ("1", "threads", "nj", "a", "b")}) > 1:
        sys.exit(f"{lm}: scores differ between the ways")
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lm", nargs="+", required=True, metavar="LM")
    parser.add_argument("--nbest", default=LISTS, metavar="F", help="(default: egs/librispeech's)")
    parser.add_argument("--times", type=int, default=6, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--turns", type=int, default=3, metavar="N", help="(default: %(default)s)")
    args = parser.parse_args()
    lists = list(lmtools.read(args.nbest))
    with tempfile.TemporaryDirectory() as home:
        home = Path(home)
        (home / "out").mkdir()
        lmtools.write(lists[:FIRST], home / "few.jsonl")
        lmtools.write(lengthen(lists, args.times), home / "lists.jsonl")
        number = args.times * sum(len(nbest.hyps) for nbest in lists)
        print(f"{number:,} hypotheses, load {os.getloadavg()[0]:.1f}\n")
        print("| model | way | seconds | least | most | times as fast as one thread |")
        print("|---|---|---:|---:|---:|---:|")
        for lm in args.lm:
            seconds = measure(lm, home, args.turns)
            work = {"two threads": 1, "two processes": 1, "two at once": 2}
            for name, found in seconds.items():
                cells = [statistics.median(found), min(found), max(found)]
                row = f"| {lm} | {name} | " + " | ".join(f"{cell:.2f}" for cell in cells)
                pairs = zip(seconds[ONE], found, strict=True)
                ratio = statistics.median(one / other for one, other in pairs)
                factor = f"{work[name] * ratio:.2f}" if name in work else ""
                print(f"{row} | {factor} |", flush=True)


if __name__ == "__main__":
    main()
