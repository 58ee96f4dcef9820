"""Tables of what word vectors bring to tasks: means over seeds, what differs significantly, the
paper's figures beside; and accuracy against the epochs of an LM.
"""

import argparse
import json
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from base import Task
from matplotlib.figure import Figure

from lmtools.base.atomic import atomic_binary, atomic_text
from lmtools.base.config import load_yaml
from lmtools.base.files import read_bytes
from lmtools.evaluate.significance import resample, sign_test
from lmtools.report.drawing import LIGHT, Picture, Theme, line
from lmtools.report.style import Look
from lmtools.report.table import NONE, Table, markdown

RESULTS = "results"  # in HOME: TASK/NAME/SEED.json
LEVEL = 0.05
RESAMPLES = 4000
PLAIN = "none"  # what all are compared with
TITLES = {
    "dep": "dependencies",
    "srl": "semantic roles",
    "discourse": "discourse",
    "nli": "entailment",
    "wsd": "word senses",
}
COLORS = "#1f6fb5", "#b5530d"


class System(NamedTuple):
    """A task by one sort of vectors: figures by name (seeds,), counts (seeds, examples, K), numbers
    of examples by set, mean seconds of a training.
    """

    figures: dict[str, np.ndarray]
    counts: np.ndarray
    examples: dict[str, int]
    seconds: float


def load(folder: Path) -> System | None:
    """Return all seeds in a directory; None where there is none."""
    results = [json.loads(read_bytes(path)) for path in sorted(folder.glob("*.json"))]
    if not results:
        return None
    figures = {
        key: np.array([result["figures"][key] for result in results])
        for key in results[0]["figures"]
    }
    seconds = float(np.mean([result["seconds"] for result in results]))
    return System(
        figures, np.array([result["counts"] for result in results]), results[0]["examples"], seconds
    )


def compare(task: Task, first: System, second: System) -> float:
    """Return two-sided p of the paired bootstrap that the first figures are equal: both the test
    examples and the seeds of either system are drawn again, so that no lucky seed or sentence
    decides.
    """
    systems = [
        np.moveaxis(counts.counts, 0, 1) for counts in (first, second)
    ]  # (examples, seeds, K)
    flat = np.concatenate([counts.reshape(len(counts), -1) for counts in systems], 1)
    sums = resample(flat.astype(np.float64), seed=1, resamples=RESAMPLES)
    draw, begin, figures = np.random.default_rng(1), 0, []
    for counts in systems:
        seeds, width = counts.shape[1:]
        end = begin + seeds * width
        sampled = sums[:, begin:end].reshape(RESAMPLES, seeds, width)
        drawn = draw.integers(seeds, size=(RESAMPLES, seeds))
        figures.append(task.score(np.take_along_axis(sampled, drawn[..., None], 1).sum(1))[0])
        begin = end
    difference = figures[0] - figures[1]
    rarer = min((difference <= 0).mean(), (difference >= 0).mean())
    return float(min(1.0, max(2 * rarer, 2 / RESAMPLES, sign_test(len(flat), 0))))


class Results(NamedTuple):
    """A task's systems by name, and p of each against others by name."""

    task: Task
    systems: dict[str, System]
    p: dict[str, dict[str, float]]

    def mean(self, name: str) -> float:
        """Return the mean of the first figure over seeds."""
        return float(self.systems[name].figures[self.task.figures[0]].mean())

    def signs(self, name: str, against: str) -> str:
        """Return what the system is significantly better than: * PLAIN, + `against`."""
        return "".join(
            sign
            for sign, other in (("*", PLAIN), ("+", against))
            if self.p[name].get(other, 1.0) < LEVEL and self.mean(name) > self.mean(other)
        )


def collect(home: Path, name: str, task: Task, vectors: list[str], against: str) -> Results:
    """Return all results of a task."""
    loaded = {vector: load(home / RESULTS / name / vector) for vector in vectors}
    systems = {vector: system for vector, system in loaded.items() if system is not None}
    p = {
        vector: {
            other: compare(task, system, systems[other])
            for other in (PLAIN, against)
            if other in systems and other != vector
        }
        for vector, system in systems.items()
    }
    return Results(task, systems, p)


def show(figures: np.ndarray) -> str:
    """Return mean and deviation over seeds."""
    mean = f"{figures.mean():.2f}"
    return mean if len(figures) == 1 else f"{mean} ± {figures.std(ddof=1):.2f}"


def write_report(args: argparse.Namespace, tasks: dict[str, Task]) -> None:
    """Write HOME/RESULTS.md and results.json; with an LM's epochs, epochs.png too."""
    args.against = args.against if args.against in args.vectors else ""
    results = {
        name: collect(args.home, name, tasks[name], args.vectors, args.against)
        for name in args.tasks
    }
    cited = load_yaml(args.conf)["papers"]
    tables = [compare_tasks(args, results), cite_paper(args.tasks, cited)]
    tables += [
        describe_task(TITLES[name], result, args.against) for name, result in results.items()
    ]
    if args.curve:
        points = read_curve(args)
        tables.append(tabulate_curve(args, points))
        title = f"{TITLES[args.curve_task]}, {tasks[args.curve_task].figures[0]}"
        picture = Picture("epochs", "", "", lambda theme: draw_curve(theme, points, title))
        with atomic_binary(args.home / "epochs.png") as out:
            out.write(picture.png(LIGHT))
    page = "".join(("# What word vectors bring to tasks\n", *(f"\n{markdown(t)}" for t in tables)))
    with atomic_text(args.home / "RESULTS.md") as out:
        out.write(page)
    print(page)
    tree = {
        name: {
            system: {
                "figures": {key: values.tolist() for key, values in figures.figures.items()},
                "p": result.p[system],
                "examples": figures.examples,
                "seconds": figures.seconds,
            }
            for system, figures in result.systems.items()
        }
        for name, result in results.items()
    }
    with atomic_text(args.home / "results.json") as out:
        out.write(json.dumps(tree, indent=1) + "\n")


def compare_tasks(args: argparse.Namespace, results: dict[str, Results]) -> Table:
    """Return the shape of the paper's Table 2: a row a sort of vectors, a column a task."""
    header = [f"{TITLES[name]}, {result.task.figures[0]}" for name, result in results.items()]
    rows = []
    for name in args.vectors:
        cells = [
            show(result.systems[name].figures[result.task.figures[0]])
            + result.signs(name, args.against)
            if name in result.systems
            else NONE
            for result in results.values()
        ]
        rows.append((name, *cells))
    signs = f"* significantly better than {PLAIN}"
    if args.against:
        signs += f", + than {args.against}"
    note = f"Mean and deviation over seeds; {signs} (p < {LEVEL:g})."
    return Table("All tasks", ("vectors", *header), tuple(rows), (note,))


def cite_paper(names: list[str], cited: dict) -> Table:
    """Return what the paper has of these tasks, on its own data."""
    rows = [
        (system, *(f"{figures[name]:g}" if name in figures else NONE for name in names))
        for system, figures in cited["rows"].items()
        if any(name in figures for name in names)
    ]
    header = ("vectors", *(TITLES[name] for name in names))
    quoted = frozenset(range(1, len(header)))
    return Table(f"{cited['source']}: other data", header, tuple(rows), quoted=quoted)


def describe_task(title: str, results: Results, against: str) -> Table:
    """Return all figures of a task, and p of each comparison."""
    others = [other for other in dict.fromkeys((PLAIN, against)) if other in results.systems]
    header = ("vectors", *results.task.figures, *(f"p, {other}" for other in others), "seconds")
    rows = []
    for name, system in results.systems.items():
        ps = (results.p[name].get(other) for other in others)
        cells = [show(system.figures[figure]) for figure in results.task.figures]
        cells += [NONE if p is None else f"{p:.3f}" for p in ps]
        rows.append((name, *cells, f"{system.seconds:.0f}"))
    system = next(iter(results.systems.values()))
    sizes = ", ".join(f"{count:,} {part}" for part, count in system.examples.items())
    note = f"Examples: {sizes}. Seconds are of one training with its tests."
    return Table(title.capitalize(), header, tuple(rows), (note,))


class Point(NamedTuple):
    """An epoch of an LM, the task's figure with its vectors (seeds,), its perplexity if known."""

    epoch: int
    figures: np.ndarray
    ppl: float | None


def read_curve(args: argparse.Namespace) -> list[Point]:
    """Return the epochs whose vectors were tried."""
    points = []
    for folder in (args.home / RESULTS / args.curve_task).glob(f"{args.curve}-epoch-*"):
        system = load(folder)
        if system is not None:
            epoch = int(re.sub(r".*\D", "", folder.name))
            path = args.ppl / args.curve / f"test-epoch-{epoch}.json"
            ppl = json.loads(read_bytes(path))["word_ppl"] if path.exists() else None
            points.append(Point(epoch, next(iter(system.figures.values())), ppl))
    return sorted(points, key=lambda point: point.epoch)


def tabulate_curve(args: argparse.Namespace, points: list[Point]) -> Table:
    """Return the shape of the paper's Figure 2 in numbers."""
    rows = [
        (str(p.epoch), show(p.figures), NONE if p.ppl is None else f"{p.ppl:.1f}") for p in points
    ]
    title = f"{TITLES[args.curve_task].capitalize()} by epochs of {args.curve}"
    return Table(title, ("epochs", "figure", "perplexity, test"), tuple(rows))


def draw_curve(theme: Theme, points: list[Point], title: str) -> Figure:
    """Draw the task's figure, and where it is known the LM's perplexity below."""
    known = [(point.epoch, point.ppl) for point in points if point.ppl is not None]
    panels = [
        (title, [(p.epoch, float(p.figures.mean())) for p in points]),
        *([("perplexity of the LM", known)] if known else []),
    ]
    figure = Figure(figsize=(6.4, 2.6 * len(panels)))
    for axis, color, (name, curve) in zip(
        np.ravel(figure.subplots(len(panels), sharex=True)), COLORS, panels, strict=False
    ):
        line(axis, theme, Look(color, color, "o", "-"), name, *zip(*curve, strict=True))
        axis.set_title(name)
    axis.set_xlabel("epochs of the LM")
    axis.set_xticks([point.epoch for point in points])
    return figure
