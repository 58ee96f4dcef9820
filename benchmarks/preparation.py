"""Peak memory and speed of preparing text: the word list and the binarised corpus, by the size of
the text. Writes JSON and a figure.

Each size is a beginning of --text. Where the text is shorter it starts over, and words that it has
once get a new name in each round: new words then go on turning up at the rate that the text itself
predicts for what follows it (Good and Turing: words seen once / all words). Memory is the resident
memory of a command and its processes together, looked at every few milliseconds. Words a second of
processor time say what the work costs where other programs run too.

With --peers PYTHON, a Python that has datasets, tokenizers and sentencepiece, sizes up to
--peers-up-to are prepared by Hugging Face's libraries and by sentencepiece too (see
preparation_peers.py): words counted, and all of the text written as ids.
"""

import argparse
import importlib.metadata
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

import torch
from matplotlib.figure import Figure
from measures.machine import describe_machine

from lmtools.base.atomic import atomic_path, atomic_text
from lmtools.base.files import read_lines
from lmtools.base.workers import map_ordered
from lmtools.report.drawing import LIGHT, Picture, Theme, line
from lmtools.report.style import Look
from lmtools.text import Normaliser
from lmtools.text.blocks import read_blocks
from lmtools.text.corpus import Corpus
from lmtools.text.subword import lists
from lmtools.text.subword.lists import Normalised, Word

SIZES = (1, 2, 5, 10, 20, 50)  # million words
MIN_COUNT = 3
EVERY = 0.01  # seconds between two looks at the memory
LOOKS = {
    "subword": Look("#0b5cad", "#4aa0f5", "o"),
    "corpus": Look("#c2410c", "#ff7a45", "s", "--"),
}
LABELS = {"subword": "word list", "corpus": "binarising"}
PEERS = {"huggingface": "tokenizers + datasets", "sentencepiece": "sentencepiece, both"}


def arguments() -> argparse.Namespace:
    """What to measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--text",
        required=True,
        nargs="+",
        metavar="F",
        help="a sentence a line (.gz, .xz), one after the other",
    )
    parser.add_argument(
        "--sizes",
        type=float,
        nargs="+",
        default=SIZES,
        metavar="M",
        help="million words (default: %(default)s)",
    )
    parser.add_argument("--nj", type=int, default=2, help="processes (default: %(default)s)")
    about = "bytes of text of a shard, as 500M (default: one file)"
    parser.add_argument("--shard-size", metavar="SIZE", help=about)
    parser.add_argument("--peers", metavar="PYTHON", help="measure other programs too")
    about = "million words of text for them, at most (default: %(default)s)"
    parser.add_argument("--peers-up-to", type=float, default=50, metavar="M", help=about)
    parser.add_argument("--out", required=True, metavar="F.json", help="write the figures")
    parser.add_argument("--figure", metavar="F.png", help="draw them")
    return parser.parse_args()


def main() -> None:
    """Measure size by size, print, write and draw."""
    args = arguments()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for row in measured(args, Path(folder)):
            rows.append(row)
            print(said(row), flush=True)
    versions = {name: importlib.metadata.version(name) for name in ("lmtools", "numpy")}
    about = {
        "nj": args.nj,
        "min_count": MIN_COUNT,
        "machine": describe_machine(torch.device("cpu")),
        "versions": versions,
    }
    with atomic_text(args.out) as stream:
        stream.write(
            json.dumps(
                {"rows": rows, "text": [Path(path).name for path in args.text], **about}, indent=1
            )
            + "\n"
        )
    if args.figure:
        picture = Picture("preparation", "", "", partial(draw, rows=rows, nj=args.nj))
        with atomic_path(args.figure) as path:
            path.write_bytes(picture.png(LIGHT))


def measured(args: argparse.Namespace, folder: Path) -> Iterator[dict]:
    """A row a size; the text grows from one to the next."""
    text, words, lines = folder / "text", 0, endless(args.text, args.nj)
    for size in sorted(round(1_000_000 * million) for million in args.sizes):
        with open(text, "a", encoding="utf-8") as stream:
            while words < size:
                sentence, again = next(lines)
                stream.write(f"{sentence}\n")
                words += len(sentence.split())
        options = ["--text", text, "--nj", str(args.nj), "--out"]
        row = {"words": words, "bytes": text.stat().st_size, "rounds": again}
        ours = [sys.executable, "-m", "lmtools"]
        lists = ["subword", "--type", "word", "--min-count", str(MIN_COUNT)]
        row["subword"] = watched(words, *ours, *lists, *options, folder / "words")
        writing = ["corpus", "--subword", folder / "words"]
        if args.shard_size:
            writing += ["--shard-size", args.shard_size]
        row["corpus"] = watched(words, *ours, *writing, *options, folder / "text.bin")
        if args.peers and words <= 1e6 * args.peers_up_to:
            peers = [args.peers, Path(__file__).with_name("preparation_peers.py")]
            for name in PEERS:
                what = [name, text, folder / name, str(args.nj), str(MIN_COUNT)]
                row[name] = watched(words, *peers, *what)
        header = Corpus.open(folder / "text.bin").header
        assert header.tokens == words, (header.tokens, words)
        yield row | {"vocabulary": header.size, "unknown": header.unknown / header.tokens}


def endless(paths: list[str], nj: int) -> Iterator[tuple[str, int]]:
    """The lines of the texts, over and over, and how many rounds were complete before each."""
    for path in paths:
        yield from ((sentence, 0) for _, sentence in read_lines(path))
    once = words_seen_once(paths, nj)
    rounds = 0
    while True:
        rounds += 1
        for path in paths:
            for _, sentence in read_lines(path):
                yield (
                    " ".join(
                        f"{word}{rounds}" if word in once else word for word in sentence.split()
                    ),
                    rounds,
                )


def words_seen_once(paths: Iterable[str], nj: int) -> set[str]:
    """The words that the texts have once."""
    parts = map_ordered(
        partial(Word.occurrences, normaliser=Normalised(Normaliser())), read_blocks(list(paths)), nj
    )
    return {word for word, count in lists.sum_counts(parts) if count == 1}


def watched(words: int, *command) -> dict:
    """Seconds (by the clock, and of processor time), words a second, and peak resident bytes of a
    command and its processes.
    """
    begin, before = time.perf_counter(), processor_time()
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL) as process:
        peak, processes = 0, 0
        while process.poll() is None:
            tree = family(process.pid)
            peak, processes = max(peak, sum(map(resident, tree))), max(processes, len(tree))
            time.sleep(EVERY)
    seconds, busy = time.perf_counter() - begin, processor_time() - before
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: failed")
    return {
        "seconds": seconds, "processor_seconds": busy, "words_per_second": words / seconds,
        "words_per_processor_second": words / busy,
        "peak_bytes": peak, "processes": processes,
    }  # fmt: skip


def processor_time() -> float:
    """The seconds of processor time of all processes that this one has started and that have
    ended.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def family(pid: int) -> list[int]:
    """A process and all below it."""
    try:
        lists = [
            Path(f"/proc/{pid}/task/{task}/children").read_text()
            for task in os.listdir(f"/proc/{pid}/task")
        ]
    except OSError:  # it has ended
        return []
    return [
        pid,
        *(
            below
            for children in lists
            for child in children.split()
            for below in family(int(child))
        ),
    ]


def resident(pid: int) -> int:
    """The bytes of memory that a process has in use, shared ones too."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def said(row: dict) -> str:
    """A row in words."""
    keys = ("peak_bytes", "words_per_second", "words_per_processor_second")
    labels = {name: label for name, label in (LABELS | PEERS).items() if name in row}
    of = {name: [row[name][key] / 1e6 for key in keys] for name in labels}
    parts = [
        f"{labels[name]} {peak:.0f} MB, {fast:.2f}M words/s, {own:.2f}M of processor time"
        for name, (peak, fast, own) in of.items()
    ]
    again = f", {row['rounds']} round(s) before" if row["rounds"] else ""
    return (
        f"{row['words']:,} words ({row['bytes'] / 1e6:.0f} MB{again}): {'; '.join(parts)};"
        f" {row['vocabulary']:,} ids"
    )


def draw(theme: Theme, rows: list[dict], nj: int) -> Figure:
    """Peak memory on the left, speed on the right, by the size of the text."""
    figure = Figure((8.6, 3.3))
    memory, speed = figure.subplots(1, 2)
    millions = [row["words"] / 1e6 for row in rows]
    for name, look in LOOKS.items():
        line(
            memory,
            theme,
            look,
            LABELS[name],
            millions,
            [row[name]["peak_bytes"] / 1e6 for row in rows],
        )
        line(
            speed,
            theme,
            look,
            LABELS[name],
            millions,
            [row[name]["words_per_processor_second"] / 1e6 for row in rows],
        )
    memory.plot(
        millions,
        [row["bytes"] / 1e6 for row in rows],
        color=theme.ink,
        linewidth=1,
        linestyle=":",
        label="the text itself",
    )
    for axes, title in (
        (memory, "Peak memory of all processes, MB"),
        (speed, "Million words a second of processor time"),
    ):
        axes.set_xscale("log")
        axes.set_xticks(millions, [f"{million:g}" for million in map(round, millions)])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_xlabel("million words of text")
        axes.set_title(f"{title}, --nj {nj}", fontsize=9.5)
    memory.legend(loc="center left", bbox_to_anchor=(0.0, 0.42))
    return figure


if __name__ == "__main__":
    main()
