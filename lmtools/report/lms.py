"""Tables and learning curves of language models by themselves: perplexities in the shape of Tables
2-4 of the GCNN paper, training.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from lmtools.report.drawing import (
    EDGE,
    PLAIN,
    ROUND,
    EndPanel,
    Picture,
    Theme,
    end_panel,
    scale_of,
    show_ppl,
)
from lmtools.report.experiment import Experiment
from lmtools.report.models import HUGE, NGRAM, VALID, Model, curve, list_rules, sets
from lmtools.report.rescoring_tables import PSEUDO as PSEUDO_NOTE
from lmtools.report.style import Look
from lmtools.report.table import Column, Query, Table, figures, places, table_of, text_column

LEFT_TO_RIGHT, TWO_WAY, PSEUDO = "perplexity", "two-way perplexity", "pseudo-perplexity"
SHORT = {LEFT_TO_RIGHT: "ppl", TWO_WAY: "two-way ppl", PSEUDO: "pseudo-ppl"}
KINDS = {
    LEFT_TO_RIGHT: (
        "Perplexities are word-level, exp(-log p / (words + sentences)), so that models of any"
        " vocabulary compare; bold is the lowest."
    ),
    TWO_WAY: (
        "A two-way perplexity is exp of the mean negative log-probability over the predictions of"
        " both directions; it compares only with its like, not with the perplexities of"
        " left-to-right models. Bold is the lowest."
    ),
    PSEUDO: PSEUDO_NOTE,
}
SIZES = "Parameters are those that were learnt, of an n-gram model its n-grams."
LOSSES = (
    "Seconds are those of training steps; losses are nats a prediction and compare only between"
    " models that predict the same things."
)
TRAINING = {  # quantities and decimals, by header
    "updates": ("updates", 0),
    "epochs": ("epochs", 0),
    "tokens": ("tokens", 0),
    "seconds": ("seconds", 0),
    "tokens/s": ("tokens a second", 0),
    "best valid loss": ("best valid loss", 3),
}
MADE_OF = {
    "parameters": ("parameters", 0),
    "epochs": ("epochs", 0),
    "training tokens": ("tokens", 0),
}
ABOVE = 2.0  # times the highest end: how far up a learning curve is shown
LINES = 6  # that one figure can hold
CURVE = (
    "perplexity of a prediction on the validation text over updates and over the time spent in"
    f" training steps; the number is where a training ended. {EDGE}"
)


def query_models(experiment: Experiment, models: Iterable[Model]) -> Query:
    return Query(experiment.rows, "lm", [model.name for model in models])


def ppl_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the models outside grids, a table for each kind of perplexity (GCNN Tables 2 and 3)."""
    for kind, note in KINDS.items():
        models = [m for m in experiment.main if m.kind == kind and (m.figures or m.config)]
        if any(model.figures for model in models):
            query = query_models(experiment, models)
            columns = [
                Column("LM", [model.label for model in models]),
                Column("family", [model.shown.label for model in models]),
                text_column("vocabulary", [model.vocabulary for model in models]),
                *query.columns(MADE_OF),
                *(perplexities(f"{name} {SHORT[kind]}", models, name) for name in sets(models)),
            ]
            for name in sets(models):
                if name != VALID:
                    header = "OOV" if name == "test" else f"{name} OOV"
                    columns.append(query.column(header, "oov", name, digits=0))
            notes = (note, *list_unequal(models), SIZES, *list_rules(models))
            title = f"{kind[0].upper()}{kind[1:]}: {experiment.title}"
            yield table_of(title, columns, notes, part="results", left=3)


def perplexities(header: str, models: Sequence[Model], name: str, sign: int = 1) -> Column:
    """Return a column of perplexities, all with the decimals that the lowest wants."""
    values = [model.ppl(name) for model in models]
    digits = max((places(value) for value in values if value is not None), default=0)
    return figures(header, values, digits, sign)


def list_unequal(models: Sequence[Model]) -> Iterator[str]:
    """Yield a warning where models differ in the words of a text that they do not know."""
    for name in sets(models):
        trees = (model.figures.get(name, {}) for model in models)
        if len({tree["oov"] for tree in trees if "oov" in tree}) > 1:
            yield (
                f"Warning: the models differ in the words of {name} that they do not know (OOV), so"
                " their perplexities do not compare."
            )


def training_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield training time and last losses of each model outside grids that was trained."""
    models = [
        model for model in experiment.main if model.lines and model.config.get("kind") != NGRAM
    ]
    yield from list_trainings(experiment, {model.label: model for model in models})


def list_trainings(experiment: Experiment, named: Mapping[str, Model]) -> Iterator[Table]:
    """Yield the table of the trainings of models, by their printed names, if there are any."""
    models = list(named.values())
    optims = [model.config.get("optim") or {} for model in models]
    if models:
        columns = [
            Column("LM", list(named)),
            text_column("criterion", [m.config.get("criterion", "softmax") for m in models]),
            text_column(
                "optimiser",
                [o.get("lr") and f"{o.get('name', 'adam')}, {o['lr']:g}" for o in optims],
            ),
            *query_models(experiment, models).columns(TRAINING),
        ]
        yield table_of("Training", columns, (LOSSES,), left=3)


def learning_pictures(experiment: Experiment) -> Iterator[Picture]:
    """Yield learning curves of the models outside grids, a figure for each kind of perplexity."""
    for kind, short in SHORT.items():
        models = {m.label: m for m in experiment.main if m.kind == kind and m.lines}
        title = "Learning curves" if kind == LEFT_TO_RIGHT else f"Learning curves, {kind}"
        name = f"learning-{short.replace(' ', '-')}"
        yield from curve_pictures(models, title, name, experiment.names.style.runs)


def curve_pictures(
    models: Mapping[str, Model], title: str, name: str, runs: Sequence[Look], note: str = ""
) -> Iterator[Picture]:
    """Yield validation perplexity of models by label over updates and over training time, if any
    has one; the caption ends with `note`. Models of one family take the looks of `runs`.
    """
    every = {label: points for label, model in models.items() if len(points := progress(model))}
    lost = [label for label in models if label not in every]
    best = sorted(every, key=lambda label: every[label][-1, 2])[:LINES]
    curves = {label: points for label, points in every.items() if label in best}
    if curves:
        ends = [f"{label} {show_ppl(points[-1, 2])}" for label, points in curves.items()]
        fewer = f" The best {len(curves)} of {len(every)} are shown." * (len(curves) < len(every))
        missing = f" Without a finite validation loss, and so not shown: {', '.join(lost)}."
        yield Picture(
            name,
            f"{title}: {CURVE}{fewer}{missing * bool(lost)}{note}",
            f"{title}, validation perplexity at the end of training: {', '.join(ends)}.",
            partial(draw_curves, find_looks(models, runs), curves),
            wide=True,
        )


def progress(model: Model) -> np.ndarray:
    """Return updates, seconds and finite validation perplexity (validations, 3)."""
    steps = [line["step"] for line in model.lines if line.get("valid_loss", HUGE) < HUGE]
    timed = curve(model.lines)
    return np.column_stack([steps, timed]) if len(timed) else np.empty((0, 3))


def draw_curves(
    looks: Mapping[str, Look], curves: Mapping[str, np.ndarray], theme: Theme
) -> Figure:
    """Draw learning curves over updates and over time, labelled at the right."""
    figure = Figure((11.5, 4.4))
    panels = figure.subplots(1, 2, sharey=True)
    first = end_panel(panels[0], theme, [p[-1, 2] for p in curves.values()], ABOVE, steps=ROUND)
    unit, name = scale_of(max(points[-1, 1] for points in curves.values()))
    for axes, column, scale in zip(panels, (0, 1), (1, unit), strict=True):
        panel = EndPanel(axes, theme, first.top)
        for label, points in curves.items():
            shown = len(points) if points[-1, 2] <= first.top else 1
            x, every = points[:, column] / scale, max(1, shown // 10)
            panel.line(looks[label], label, x, points[:, 2], markevery=every)
        axes.set_xlim(0, 1.03 * max(points[-1, column] for points in curves.values()) / scale)
        axes.xaxis.set_major_formatter(PLAIN)
    panel.write()
    panels[0].set_xlabel("updates")
    panels[1].set_xlabel(f"training time ({name})")
    panels[0].set_ylabel("validation perplexity (a prediction, log scale)")
    return figure


def find_looks(models: Mapping[str, Model], runs: Sequence[Look]) -> dict[str, Look]:
    """Return the look of each model: that of its family where no other one is of it."""
    families = [model.shown.label for model in models.values()]
    if len(set(families)) == len(families):
        return {label: model.shown.look for label, model in models.items()}
    return {label: runs[i % len(runs)] for i, label in enumerate(models)}
