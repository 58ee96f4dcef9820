#!/usr/bin/env python3
"""grids.py plan|sizes CONF GRID..., grids.py write CONF GRID... OUT: the runs of the grids
CONF/grids/GRID.yaml.

plan: a line a run with tabs between NAME, YAML, VOCABULARY, timed or untimed, and settings over the
YAML. sizes: receptive field, weights and blocks of the convolutional ones, for people. write: what
the runs are called and how they are drawn, for the report, in OUT/GRID.yaml. What CONF lacks is
taken from conf/grids and ../../conf.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml
from widths import context, matched, parsed, weights, written

from lmtools.config import build, load_yaml, override, read_layers
from lmtools.errors import UserError
from lmtools.files import atomic_text

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
    at: float | None = None  # its place on the axis of a line, where its label is no number


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
        base, vocabulary, chosen = (
            run.base or grid.base,
            run.vocabulary or grid.vocabulary,
            settings(grid, run, conf),
        )
        own = base if vocabulary == "words" else f"{base}-{vocabulary}"
        yield label, run, called(name, label) if chosen else own, base, vocabulary, chosen


def settings(grid: Grid, run: Run, conf: Path) -> list[str]:
    """All `key=value` settings of a run over its base."""
    chosen, tree = list(run.settings), read_layers(base_of(grid, run, conf))
    if not (grid.match or run.kernel):
        return chosen
    arch = override(tree, chosen)["arch"]
    blocks = parsed(arch["blocks"])
    if run.kernel:
        blocks = [[(run.kernel, blocks[-1][-1][1])]] * (run.depth or len(blocks))
    if grid.match:
        blocks = matched(arch, tree["arch"], blocks)
    if written(blocks) != written(parsed(arch["blocks"])):
        chosen.append("arch.blocks=[" + ", ".join(f"'{text}'" for text in written(blocks)) + "]")
    return chosen


def plan(conf: Path, *names: str) -> None:
    """Print the runs of all grids."""
    for name in names:
        timed = "timed" if load(conf, name)[0].timed else "untimed"
        for _, _, model, base, vocabulary, chosen in planned(conf, name):
            print(model, base, vocabulary, timed, *chosen, sep="\t")


def sizes(conf: Path, *names: str) -> None:
    """Print what the widths came to."""
    for name in names:
        for label, _, _, base, _, chosen in planned(conf, name):
            arch = override(read_layers(find(base, conf, SHARED)), chosen).get("arch", {})
            if "blocks" in arch:
                blocks = parsed(arch["blocks"])
                count = weights(arch["dim"], blocks, arch.get("gate", "glu"))
                print(
                    f"{name} {label}\t{context(blocks)} tokens\t{count:,}"
                    f" weights\t{' '.join(written(blocks))}"
                )


def write(conf: Path, *names: str) -> None:
    """Write what the report has to know of each grid; the last of the names is the directory."""
    *names, out = names
    for name in names:
        grid, runs = load(conf, name)
        tree = {
            "title": grid.title,
            "figure": grid.figure,
            "runs": {label: model for label, _, model, *_ in planned(conf, name)},
        }
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
    return float(label) if run.at is None and re.fullmatch(r"\d+(\.\d+)?", label) else run.at


if __name__ == "__main__":
    verb, conf, *names = sys.argv[1:]
    try:
        {"plan": plan, "sizes": sizes, "write": write}[verb](Path(conf), *names)
    except UserError as error:
        sys.exit(str(error))
