#!/usr/bin/env python3
"""grids.py plan CONF LMS GRID..., sizes CONF GRID..., write CONF GRID... OUT: LMs to train, and the
runs of the grids CONF/grids/GRID.yaml.

plan: a line an LM with tabs between NAME, YAML file (of an n-gram knORDER), VOCABULARY, timed or
untimed, and settings over the file, quoted for a shell; LMS are words NAME or NAME@VOCABULARY, or
none. sizes: receptive field, weights and blocks of the convolutional runs, for people. write: what
the runs are called and how they are drawn, for the report, in OUT/GRID.yaml. What CONF lacks is
taken from conf/grids and ../../conf.
"""

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from lmtools.atomic import atomic_text
from lmtools.config import build, load_yaml, override, read_layers
from lmtools.errors import UserError, exit_with_message

SHARED = Path("../../conf")
FIGURES = ("curves", "line")


@dataclass(frozen=True)
class Run:
    """What one run changes; `kernel` and `depth` are of a stack of equal blocks of one convolution,
    in place of the base's blocks.
    """

    settings: tuple[str, ...] = ()
    base: str | None = None
    vocabulary: str | None = None
    kernel: int | None = None
    depth: int | None = None
    # its group, whose best run is drawn under this label
    of: str | int | None = None
    at: float | None = None  # its place on the axis of a line, where no label is a number


@dataclass(frozen=True)
class Grid:
    """Runs that are compared with each other; with `match` all have widths that give as many
    parameters as their base has.
    """

    title: str
    runs: dict
    figure: str = "curves"
    x: str | None = None
    base: str = "gcnn"
    vocabulary: str = "words"
    match: bool = False
    settings: tuple[str, ...] = ()  # of all runs, over the base and under their own
    timed: bool = False  # stage 5 measures the runs

    def __post_init__(self):
        if self.figure not in FIGURES:
            raise UserError(f"figure: {self.figure!r} is unknown; known: {', '.join(FIGURES)}")
        if (self.figure == "line") != bool(self.x):
            raise UserError(
                "x: the label of a line's axis; give it with `figure: line` and only there"
            )


def load(conf: Path, name: str) -> tuple[Grid, dict[str, Run]]:
    """The grid CONF/grids/NAME.yaml and its runs by label; UserError for what does not fit."""
    path = find(name, conf / "grids", Path("conf/grids"))
    grid = build(Grid, load_yaml(path), path)
    runs = {
        str(label): build(Run, run or {}, path, f"runs.{label}.")
        for label, run in grid.runs.items()
    }
    if len({called(name, label) for label in runs}) < len(runs):
        raise UserError(
            f"{path}: labels that differ only in case or punctuation would share a directory;"
            " rename one"
        )
    if grid.figure == "line" and all(place(label, run) is None for label, run in runs.items()):
        raise UserError(
            f"{path}: no run has a place on the axis; make labels numbers, or give runs `at:`"
        )
    return grid, runs


def find(name: str, *folders: Path) -> Path:
    """NAME.yaml in the first of the folders that has it."""
    for folder in folders:
        if (folder / f"{name}.yaml").exists():
            return folder / f"{name}.yaml"
    known = sorted(path.stem for folder in set(folders) for path in folder.glob("*.yaml"))
    raise UserError(
        f"{folders[0]}/{name}.yaml: not there; known: {', '.join(dict.fromkeys(known))}"
    )


def base_of(grid: Grid, run: Run, conf: Path) -> Path:
    """The YAML file that a run's settings are laid over."""
    return find(run.base or grid.base, conf, SHARED)


def called(grid: str, label: str) -> str:
    """GRID-LABEL, safe as a file name."""
    return f"{grid}-{re.sub('[^a-z0-9.]+', '-', label.lower()).strip('-')}"


def planned(conf: Path, name: str):
    """Each run of a grid: label, run, model's name, base, vocabulary, settings over the base. One
    that changes nothing is the base.
    """
    grid, runs = load(conf, name)
    for label, run in runs.items():
        base, vocabulary = run.base or grid.base, run.vocabulary or grid.vocabulary
        tree, chosen = read_layers(base_of(grid, run, conf)), settings(grid, run, conf)
        chosen = [] if override(tree, chosen) == tree else chosen
        own = base if vocabulary == "words" else f"{base}-{vocabulary}"
        yield label, run, called(name, label) if chosen else own, base, vocabulary, chosen


def settings(grid: Grid, run: Run, conf: Path) -> list[str]:
    """All `key=value` settings of a run over its base."""
    chosen, tree = [*grid.settings, *run.settings], read_layers(base_of(grid, run, conf))
    if not (grid.match or run.kernel):
        return chosen
    from widths import matched, read, written  # torch, which takes seconds

    arch = override(tree, chosen)["arch"]
    blocks = own = read(arch)
    if run.kernel:
        blocks = [((run.kernel, blocks[-1][-1][1]),)] * (run.depth or len(blocks))
    if grid.match:
        blocks = matched(arch, tree["arch"], blocks)
    if blocks != own:
        chosen.append("arch.blocks=[" + ", ".join(f"'{text}'" for text in written(blocks)) + "]")
    return chosen


def plan(conf: Path, lms: str, *names: str) -> None:
    """Print the LMs and the runs of all grids, each once."""
    rows = {}
    for word in lms.split():
        if word != "none":
            name, *row = planned_lm(conf, word)
            rows.setdefault(name, [*row, "timed"])
    for grid in names:
        timed = "timed" if load(conf, grid)[0].timed else "untimed"
        for _, _, name, base, vocabulary, chosen in planned(conf, grid):
            row = rows.setdefault(name, [find(base, conf, SHARED), vocabulary, timed, *chosen])
            row[2] = "timed" if "timed" in (row[2], timed) else timed
    for name, (file, vocabulary, timed, *chosen) in rows.items():
        if not re.fullmatch("words|char|(char|bpe|unigram)-[1-9][0-9]*", vocabulary):
            known = "it is words, char, bpe-SIZE or unigram-SIZE"
            raise UserError(f"'{vocabulary}' is no vocabulary; {known}")
        print(name, file, vocabulary, timed, shlex.join(chosen), sep="\t")


def planned_lm(conf: Path, word: str) -> tuple[str, str, str]:
    """The name of an LM, its YAML file or knORDER, and its vocabulary, from NAME or
    NAME@VOCABULARY.
    """
    base, _, vocabulary = word.partition("@")
    vocabulary = vocabulary or "words"
    if re.fullmatch("kn[1-6]", word):
        return word, word, vocabulary
    if not any((folder / f"{base}.yaml").exists() for folder in (conf, SHARED)):
        raise UserError(f"no {base}.yaml in {conf} and {SHARED}; name LMs that are there")
    return word.replace("@", "-"), str(find(base, conf, SHARED)), vocabulary


def sizes(conf: Path, *names: str) -> None:
    """Print what the widths came to."""
    from widths import read, weights, written  # torch, which takes seconds

    for name in names:
        for label, _, _, base, _, chosen in planned(conf, name):
            arch = override(read_layers(find(base, conf, SHARED)), chosen).get("arch", {})
            if "blocks" in arch:
                blocks = read(arch)
                count = weights(arch["dim"], blocks, arch.get("gate", "glu"))
                context = 1 + sum(kernel - 1 for block in blocks for kernel, _ in block)
                text = " ".join(written(blocks))
                print(f"{name} {label}\t{context} tokens\t{count:,} weights\t{text}")


def write(conf: Path, *names: str) -> None:
    """Write what the report has to know of each grid; the last of the names is the directory."""
    *names, out = names
    for name in names:
        grid, runs = load(conf, name)
        tree = {
            "title": grid.title,
            "figure": grid.figure,
            "runs": {label: model for label, _, model, *_ in planned(conf, name)},
            "own": [model for _, _, model, _, _, chosen in planned(conf, name) if chosen],
        }
        if groups := {label: str(run.of) for label, run in runs.items() if run.of is not None}:
            tree["of"] = groups
        if grid.figure == "line":
            tree |= {
                "x": grid.x,
                "at": {
                    label: place(label, run)
                    for label, run in runs.items()
                    if place(label, run) is not None
                },
            }
        with atomic_text(Path(out) / f"{name}.yaml") as stream:
            yaml.safe_dump(tree, stream, sort_keys=False, allow_unicode=True)


def place(label: str, run: Run) -> float | None:
    """Where a run stands on a line's axis; None: beside it, as a reference."""
    value = label if run.of is None else str(run.of)
    return float(value) if run.at is None and re.fullmatch(r"\d+(\.\d+)?", value) else run.at


if __name__ == "__main__":
    verb, conf, *names = sys.argv[1:]
    with exit_with_message():
        {"plan": plan, "sizes": sizes, "write": write}[verb](Path(conf), *names)
