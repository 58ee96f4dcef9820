#!/usr/bin/env python3
"""grids.py runs|vocabularies|sizes CONF GRID..., grids.py write CONF GRID... OUT: the runs of the
grids CONF/grids/GRID.yaml, which run_grids.sh trains.

runs: a line a run, VOCABULARY/NAME, of the LM NAME over VOCABULARY; each once. vocabularies: those
of pieces that runs need beside words and characters, a line each. sizes: receptive field, weights
and blocks of the convolutional runs, for people. write: all settings of each run, as
OUT/runs/VOCABULARY/NAME.yaml, and what the runs are called and how they are drawn, for the report,
as OUT/grids/GRID.yaml. What CONF lacks is taken from conf/grids and ../../conf.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from lmtools.base.atomic import atomic_text
from lmtools.base.config import build, load_yaml, override, read_layers
from lmtools.base.errors import UserError, exit_with_message

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

    def __post_init__(self):
        if self.figure not in FIGURES:
            raise UserError(f"figure: {self.figure!r} is unknown; known: {', '.join(FIGURES)}")
        if (self.figure == "line") != bool(self.x):
            raise UserError(
                "x: the label of a line's axis; give it with `figure: line` and only there"
            )


def load(conf: Path, name: str) -> tuple[Grid, dict[str, Run]]:
    """Return the grid CONF/grids/NAME.yaml and its runs by label; UserError for what does not
    fit.
    """
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
    """Return NAME.yaml in the first of the folders that has it."""
    for folder in folders:
        if (folder / f"{name}.yaml").exists():
            return folder / f"{name}.yaml"
    known = sorted(path.stem for folder in set(folders) for path in folder.glob("*.yaml"))
    raise UserError(
        f"{folders[0]}/{name}.yaml: not there; known: {', '.join(dict.fromkeys(known))}"
    )


def base_of(grid: Grid, run: Run, conf: Path) -> Path:
    """Return the YAML file that a run's settings are laid over."""
    return find(run.base or grid.base, conf, SHARED)


def called(grid: str, label: str) -> str:
    """Return GRID-LABEL, safe as a file name."""
    return f"{grid}-{re.sub('[^a-z0-9.]+', '-', label.lower()).strip('-')}"


def planned(conf: Path, name: str):
    """Yield each run of a grid: label, run, model's name, base, vocabulary, settings over the base.
    One that changes nothing is the base.
    """
    grid, runs = load(conf, name)
    for label, run in runs.items():
        base, vocabulary = run.base or grid.base, run.vocabulary or grid.vocabulary
        tree, chosen = read_layers(base_of(grid, run, conf)), settings(grid, run, conf)
        chosen = [] if override(tree, chosen) == tree else chosen
        parent = base if vocabulary == "words" else f"{base}-{vocabulary}"
        yield label, run, called(name, label) if chosen else parent, base, vocabulary, chosen


def settings(grid: Grid, run: Run, conf: Path) -> list[str]:
    """Return all `key=value` settings of a run over its base."""
    chosen, tree = [*grid.settings, *run.settings], read_layers(base_of(grid, run, conf))
    if not (grid.match or run.kernel):
        return chosen
    from widths import matched, read, written  # torch, which takes seconds

    arch = override(tree, chosen)["arch"]
    blocks = layers = read(arch)
    if run.kernel:
        blocks = [((run.kernel, blocks[-1][-1][1]),)] * (run.depth or len(blocks))
    if grid.match:
        blocks = matched(arch, tree["arch"], blocks)
    if blocks != layers:
        chosen.append("arch.blocks=[" + ", ".join(f"'{text}'" for text in written(blocks)) + "]")
    return chosen


def runs(conf: Path, *names: str) -> None:
    """Print VOCABULARY/NAME of each run of the grids, each once."""
    print("\n".join(all_runs(conf, names)))


def vocabularies(conf: Path, *names: str) -> None:
    """Print the vocabularies of pieces that the runs of the grids read, each once."""
    named = dict.fromkeys(path.partition("/")[0] for path in all_runs(conf, names))
    print("\n".join(name for name in named if name not in ("words", "char")))


def all_runs(conf: Path, names: Sequence[str]) -> dict[str, dict]:
    """Return the settings of each run of the grids by VOCABULARY/NAME; UserError for what is no
    vocabulary.
    """
    runs = {}
    for grid in names:
        for _, _, name, base, vocabulary, chosen in planned(conf, grid):
            if not re.fullmatch("words|char|(bpe|unigram)-[1-9][0-9]*", vocabulary):
                known = "it is words, char, bpe-SIZE or unigram-SIZE"
                raise UserError(f"{grid}: '{vocabulary}' is no vocabulary; {known}")
            tree = override(read_layers(find(base, conf, SHARED)), chosen)
            runs[f"{vocabulary}/{name}"] = tree
    return runs


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
    """Write the settings of each run, and what the report has to know of each grid; the last of the
    names is the directory.
    """
    *names, out = names
    for run, tree in all_runs(conf, names).items():
        with atomic_text(Path(out) / f"runs/{run}.yaml") as stream:
            yaml.safe_dump(tree, stream, sort_keys=False, allow_unicode=True)
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
        with atomic_text(Path(out) / f"grids/{name}.yaml") as stream:
            yaml.safe_dump(tree, stream, sort_keys=False, allow_unicode=True)


def place(label: str, run: Run) -> float | None:
    """Return where a run stands on a line's axis; None: beside it, as a reference."""
    value = label if run.of is None else str(run.of)
    return float(value) if run.at is None and re.fullmatch(r"\d+(\.\d+)?", value) else run.at


VERBS = {"runs": runs, "vocabularies": vocabularies, "sizes": sizes, "write": write}

if __name__ == "__main__":
    verb, conf, *names = sys.argv[1:]
    with exit_with_message():
        VERBS[verb](Path(conf), *names)
