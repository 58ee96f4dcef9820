"""Time and memory of estimating, mixing and pruning n-gram models, by lmtools, IRSTLM and KenLM.

    benchmarks/ngrams.sh --text DIR [--only estimate|mix|prune|answer ...] [--nbest lists.jsonl]

The lines of the files of DIR are the text: --words of its beginning and of its end estimate two
models of the first of --orders, all of it one of the second; the last lines are held out. Each
command runs alone: seconds of CPU (user and system), seconds, the largest memory that it had.

What they do is not the same. `interpolate-lm` finds weights and perplexity, and writes no mixture;
its model is the linear one. `interpolate` writes a log-linear mixture, of lmplz's intermediate
files, not of ARPA files. `prune-lm` takes an n-gram away where p(history, word) (log p - log p of
the shorter one with the back-off weight) is at most its threshold (the weighted difference of
Seymore and Rosenfeld 1996, with probabilities for counts), `lmtools` where perplexity changes by
less (Stolcke 1998): so each has perplexity beside its n-grams. Perplexities are of held-out
sentences whose words all models know. lmtools mixes and prunes what it has estimated.
"""

import argparse
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lmtools import formats
from lmtools.base.computing import Computing
from lmtools.base.files import raw_lines
from lmtools.base.specs import LMSpec
from lmtools.ngram import arrays
from lmtools.ngram.derived import NgramSource
from lmtools.score.ppl import perplexity

HELD = 20_000  # lines
ROWS = ["estimate", "mix", "prune", "answer"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("tools/ngrams"))
    parser.add_argument("--words", type=int, default=14_000_000)
    parser.add_argument("--orders", type=int, nargs=2, default=[3, 4])
    parser.add_argument("--thresholds", nargs=2, default=["1e-8", "1e-8"])
    parser.add_argument("--kenlm", type=Path, required=True)
    parser.add_argument("--irstlm", type=Path, default=Path("/usr/lib/irstlm/bin"))
    parser.add_argument("--only", nargs="+", choices=ROWS, default=ROWS, help="of the work")
    parser.add_argument("--nbest", type=Path, help="lists that a fresh process scores")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    options.kenlm, options.irstlm = options.kenlm.absolute(), options.irstlm.absolute()
    options.nbest = options.nbest and options.nbest.absolute()
    texts = sorted(path.absolute() for path in options.text.iterdir())
    os.chdir(options.out)
    split_text(texts, options.words)
    few, many = options.orders
    print("command | CPU s | s | MB | n-grams | perplexity of held-out text")
    wanted = {"a": {"mix", "answer"}, "b": {"mix"}, "all": {"estimate", "prune"}}
    for name, order in (("a", few), ("b", few), ("all", many)):
        if wanted[name] & {*options.only}:
            estimate(options.kenlm, name, order)
    if {"mix", "prune"} & {*options.only}:
        keep_known([f"{name}.arpa" for name in ("a", "b", "all") if Path(f"{name}.arpa").exists()])
    if "mix" in options.only:
        mix(options)
    if "prune" in options.only:
        prune(options)
    if "answer" in options.only and options.nbest:
        answer(options)


def split_text(texts: list[Path], words: int) -> None:
    """Write a.txt, b.txt, all.txt and held.txt."""
    lines = [raw for path in texts for raw in lines_of(path) if raw.strip()]
    lines, held = lines[:-HELD], lines[-HELD:]
    for name, part in (("all", lines), ("held", held)):
        Path(f"{name}.txt").write_bytes(b"".join(part))
    for name, part in (("a", lines), ("b", lines[::-1])):
        Path(f"{name}.txt").write_bytes(b"".join(beginning(part, words)))


def beginning(lines: list[bytes], words: int) -> Iterator[bytes]:
    """The first lines, of so many words in all."""
    for line in lines:
        if words <= 0:
            return
        words -= len(line.split())
        yield line


def estimate(kenlm: Path, name: str, order: int) -> None:
    """Write the rows of estimation, lmplz's NAME.arpa, KenLM's intermediate files NAME.im.*, our
    NAME.lm, and NAME.sorted for IRSTLM, which wants n-grams in the order of their contexts.
    """
    command = [kenlm / "lmplz", "--order", str(order), "-S", "2G", "-T", "./"]
    command += ["--discount_fallback", "--text", f"{name}.txt"]
    _, theirs = measure([*command, "--arpa", f"{name}.arpa"])
    row(f"lmplz of {name}.txt, order {order}", theirs)
    ours = [sys.executable, "-m", "lmtools", "ngram", "--text", f"{name}.txt", "--kenlm", "none"]
    _, cost = measure([*ours, "--order", str(order), "--out", f"{name}.lm"])
    row(f"lmtools ngram of {name}.txt, order {order}", cost)
    ratio(cost, theirs)
    if name != "all":
        subprocess.run([*command, "--intermediate", f"{name}.im"], check=True, capture_output=True)
    ids = arrays.new_vocabulary()
    model = NgramSource.of(f"{name}.lm").read(ids)
    with open(f"{name}.sorted", "wb") as stream:
        arrays.write_arpa(stream, model, ids)
    print(f"{name}: order {order}, {sum(model.counts):,} n-grams", flush=True)


def keep_known(arpas: list[str]) -> None:
    """Write known.txt, the held-out sentences of words that all models know; marked.txt, with <s>
    and </s>.
    """
    known = set.intersection(*(set(map(str, unigrams(path))) for path in arpas))
    lines = [
        line for line in Path("held.txt").read_text().splitlines() if known.issuperset(line.split())
    ]
    Path("known.txt").write_text("".join(f"{line}\n" for line in lines))
    Path("marked.txt").write_text("".join(f"<s> {line} </s>\n" for line in lines))


def unigrams(path: str) -> Iterator[str]:
    """The words of an ARPA file."""
    inside = False
    for raw in lines_of(path):
        if inside and raw.startswith((b"\\", b"\n")):
            return
        if inside:
            yield raw.decode().split("\t")[1].strip()
        inside = inside or raw == b"\\1-grams:\n"


def mix(options) -> None:
    """The rows of mixtures."""
    lmtools = [sys.executable, "-m", "lmtools", "ngram", "mix", "a.lm", "b.lm", "--kenlm", "none"]
    said, cost = measure([*lmtools, "--text", "known.txt", "--out", "tuned"])
    row("lmtools ngram mix --text", cost, "tuned")
    weights = re.findall(r"^([\d.]+) [ab]\.lm$", said, re.MULTILINE)
    rows = [f"{weight} {name}.sorted\n" for weight, name in zip(weights, "ab", strict=True)]
    Path("list").write_text("LMINTERPOLATION 2\n" + "".join(rows))
    irstlm = options.irstlm / "interpolate-lm"
    _, cost = measure([irstlm, "list", "list.out", "--learn=marked.txt"])
    learned = re.findall(r"^([\d.]+) ", Path("list.out").read_text(), re.MULTILINE)
    row(f"interpolate-lm --learn, one step from {weights}: {learned}", cost)
    said, cost = measure([irstlm, "list", "--eval=marked.txt", "--dub=0"])
    row("interpolate-lm --eval", cost, shown=re.search(r"Nw=\d+ PP=([\d.]+)", said)[1])
    lm = "mix:" + ",".join(f"{x}.lm={weight}" for x, weight in zip("ab", weights, strict=True))
    command = [sys.executable, "-m", "lmtools", "ppl", "--text", "known.txt", "--lm", lm]
    _, cost = measure(command)
    row("lmtools ppl --lm mix:", cost, shown=found_perplexity(lm))
    _, ours = measure([*lmtools, "--mix", "0.5", "0.5", "--out", "half"])
    row("lmtools ngram mix --mix 0.5 0.5", ours, "half")
    command = [options.kenlm / "interpolate", "-m", "a.im", "b.im", "-w", "0.5", "0.5", "-S", "2G"]
    _, cost = measure([*command, "-T", "./"], "kenlm.arpa")
    row("interpolate -w 0.5 0.5 (log-linear)", cost, "kenlm.arpa")
    ratio(ours, cost)


def prune(options) -> None:
    """The rows of pruned models."""
    row("not pruned", None, "all.arpa")
    ours, theirs = options.thresholds
    command = [sys.executable, "-m", "lmtools", "ngram", "prune", "all.lm", "--kenlm", "none"]
    _, first = measure([*command, "--threshold", ours, "--out", "pruned"])
    row(f"lmtools ngram prune --threshold {ours}", first, "pruned")
    command = [options.irstlm / "prune-lm", f"--threshold={theirs}", "all.sorted", "irstlm.arpa"]
    _, cost = measure(command)
    row(f"prune-lm --threshold={theirs}", cost, "irstlm.arpa")
    ratio(first, cost)


def answer(options) -> None:
    """The rows of a process that scores lists by an n-gram in KenLM's binary form, and of KenLM's
    module alone, which has the same sentences in memory and the same form to load.
    """
    subprocess.run(
        [options.kenlm / "build_binary", "a.arpa", "a.bin"], check=True, capture_output=True
    )
    command = [sys.executable, "-m", "lmtools", "score", "--nbest", options.nbest, "--lm", "a.bin"]
    _, ours = measure([*command, "--cache", "none", "--out", "a.scores"])
    row(f"lmtools score of {options.nbest.name}", ours)
    with open("texts", "w") as stream:
        for nbest in formats.read(str(options.nbest)):
            stream.writelines(f"{hyp.text}\n" for hyp in nbest.hyps)
    script = "import kenlm; lm = kenlm.Model('a.bin'); print(sum(map(lm.score, open('texts'))))"
    _, theirs = measure([sys.executable, "-c", script])
    row("kenlm.Model.score of the same texts", theirs)
    ratio(ours, theirs)


def measure(command: list, out: str = "said") -> tuple[str, str]:
    """Run a command; what it writes to standard output (also in the file `out`), and its cost."""
    timed = ["/usr/bin/time", "--format=%U %S %e %M", "--output=cost", *map(str, command)]
    with open(out, "wb") as stream, open("log", "wb") as log:
        status = subprocess.run(timed, stdout=stream, stderr=log).returncode
    if status:
        sys.exit(f"{command[0]} failed ({status}):\n{Path('log').read_text()}")
    user, system, seconds, kilobytes = map(float, Path("cost").read_text().split())
    cost = f"{user + system:.1f} | {seconds:.1f} | {kilobytes / 1000:.0f}"
    return (Path(out).read_text() if out == "said" else ""), cost


def ratio(ours: str, theirs: str) -> None:
    """Print our CPU time and memory in parts of the other program's."""
    pairs = [
        (float(one), float(other))
        for one, other in zip(*map(split_cost, (ours, theirs)), strict=True)
    ]
    cpu, seconds, memory = (one / max(other, 0.01) for one, other in pairs)
    print(f"lmtools : the other | {cpu:.2f} | {seconds:.2f} | {memory:.2f}", flush=True)


def split_cost(cost: str) -> list[str]:
    """CPU seconds, seconds and megabytes of a row."""
    return cost.split(" | ")


def row(name: str, cost: str | None, lm: str = "", shown: str = "") -> None:
    """Print a row; of a model `lm` also its n-grams and perplexity."""
    sizes = ""
    if lm:
        path = Path(lm, "lm.arpa") if Path(lm).is_dir() else Path(lm)
        header = b"".join(itertools.takewhile(lambda raw: raw[:8] != b"\\1-grams", lines_of(path)))
        sizes = " ".join(re.findall(r"ngram +\d+= *(\d+)", header.decode()))
        shown = found_perplexity(lm)
    print(" | ".join([name, cost or "- | - | -", sizes, shown]), flush=True)


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file."""
    return (raw for _, raw in raw_lines(path))


def found_perplexity(lm: str) -> str:
    """The perplexity of known.txt."""
    lines = Path("known.txt").read_text().splitlines()
    return f"{perplexity(lines, LMSpec(lm), Computing('cpu', cache='none'))['word_ppl']:.2f}"


if __name__ == "__main__":
    main()
