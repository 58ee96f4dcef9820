"""Draw what run_books.sh trained: validation loss and WER over the words of text that each neural
LM read, beside the tuned first pass and the lowest n-gram.

    books_curve.py EXPDIR DATADIR OUT.png CASE/SET ...

of EXPDIR/lm/KIND-SIZE/metrics.jsonl, DATADIR/CASE/SET/nbest.jsonl and
EXPDIR/CASE/rescore/SYSTEM/SET.txt; a panel of WER for each set.
"""

import argparse
import json
from pathlib import Path

from matplotlib.figure import Figure

from lmtools.base.atomic import atomic_binary
from lmtools.evaluate.corpus import References
from lmtools.formats import kaldi_text, read
from lmtools.report.drawing import LIGHT, Picture, Theme, line
from lmtools.report.style import load_style

PREFIXES = {"M": 1e6, "K": 1e3}
STRAIGHT = ("first-pass", "ngram")


def main() -> None:
    """Read what there is, draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("expdir", type=Path)
    parser.add_argument("datadir", type=Path)
    parser.add_argument("out")
    parser.add_argument("panels", nargs="+", metavar="CASE/SET")
    args = parser.parse_args()
    losses = {
        path.parent.name: read_loss(path)
        for path in sorted(args.expdir.glob("lm/*-*/metrics.jsonl"))
    }
    panels = {}
    for panel in args.panels:
        case = panel.partition("/")[0]
        panels[f"WER, {case}"] = read_wers(args.datadir / panel / "nbest.jsonl", args.expdir / case)
    picture = Picture("curve", "", "", lambda theme: draw(theme, losses, panels))
    with atomic_binary(args.out) as stream:
        stream.write(picture.png(LIGHT))


def split_name(name: str) -> tuple[str, float]:
    """Split KIND-SIZE, as in causal-10M, into the kind of a model and its number of words."""
    kind, _, size = name.rpartition("-")
    return kind, float(size[:-1]) * PREFIXES[size[-1]]


def read_loss(path: Path) -> float:
    """Return the least validation loss of a training, in nats a piece."""
    rows = [json.loads(row) for row in path.read_text().splitlines()]
    return min(row["valid_loss"] for row in rows if "valid_loss" in row)


def read_wers(lists: Path, home: Path) -> dict[str, float]:
    """Return the WER of each system in HOME/rescore on the set of the lists SET/nbest.jsonl."""
    references = References({nbest.utt: nbest.ref for nbest in read(lists, "jsonl")})
    return {
        path.parent.name: references.evaluate(kaldi_text.read(path)).score
        for path in home.glob(f"rescore/*/{lists.parent.name}.txt")
    }


def draw(theme: Theme, losses, panels) -> Figure:
    """Draw a panel of losses, then one of WER for each set."""
    figure = Figure(figsize=(4.1 * (1 + len(panels)), 3.6))
    axes = figure.subplots(1, 1 + len(panels))
    style = load_style()
    for axis in axes:
        axis.set_xscale("log")
        axis.set_xlabel("words of text, read once")
        sizes = {split_name(name)[1]: name.rpartition("-")[2] for name in losses}
        axis.set_xticks(list(sizes), list(sizes.values()))
        axis.minorticks_off()
    axes[0].set_title("validation loss, nats a piece")
    draw_kinds(axes[0], theme, style, losses)
    for axis, (title, wers) in zip(axes[1:], panels.items(), strict=True):
        axis.set_title(title)
        draw_kinds(axis, theme, style, {name: wers[name] for name in losses if name in wers})
        for name in STRAIGHT:
            system = min(each for each in wers if each.startswith(name) and "+" not in each)
            printed = style.systems.get(name) or style.lms[name]
            axis.axhline(wers[system], color=theme.color(printed.look), linestyle=":")
            axis.annotate(
                printed.label,
                (1, wers[system]),
                xycoords=("axes fraction", "data"),
                ha="right",
                va="bottom",
                fontsize=8.5,
                color=theme.color(printed.look),
            )
    axes[0].legend(loc="lower left", fontsize=8.5)
    return figure


def draw_kinds(axis, theme: Theme, style, values: dict[str, float]) -> None:
    """Draw a line a kind of LM, over words; `values` by name."""
    points = {}
    for name, value in values.items():
        kind, words = split_name(name)
        points.setdefault(kind, []).append((words, value))
    for kind, row in points.items():
        printed = style.lms[kind]
        line(axis, theme, printed.look, printed.label, *zip(*sorted(row), strict=True))


if __name__ == "__main__":
    main()
