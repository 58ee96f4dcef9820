"""Tables of a language-modelling experiment: perplexities in the shape of Tables 2-4 of the GCNN
paper, grids, training, stages.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lmtools.report.lm.experiment import CURVES, LINE, Grid, LmExperiment, rules, sets
from lmtools.report.lm.models import VALID, Model
from lmtools.report.page.columns import NONE, Column, figures, places, table_of
from lmtools.report.page.table import Table
from lmtools.report.stages import stage_tables

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
    PSEUDO: (
        "A pseudo-perplexity sees both sides of each token: it is lower than a perplexity by nature"
        " and compares only with its like."
    ),
}
SIZES = "Parameters are those that were learnt, of an n-gram model its n-grams."
MILESTONE = (
    "Updates to a valid perplexity: the first validation that reached what the weakest of the drawn"
    " runs came to."
)
SPEEDS = ("throughput", "responsiveness", "contiguous")  # keys of the bench's rows
TABLE_4 = "The GCNN paper's responsiveness is that of one long sequence (contiguous; Table 4)."


def ppl_tables(experiment: LmExperiment) -> Iterator[Table]:
    """Yield the models outside grids: one table for each kind of perplexity (GCNN Tables 2 and 3,
    Subword ELMo Table 1).
    """
    for kind, note in KINDS.items():
        models = [
            model
            for model in experiment.main
            if model.kind == kind and (model.figures or model.config)
        ]
        if any(model.figures for model in models):
            names = [model.label for model in models]
            notes = (note, *unequal(models), SIZES, *rules(models))
            title = f"{kind[0].upper()}{kind[1:]}: {experiment.title}"
            columns = [*made_of(models), *reached(models, kind)]
            yield table_of(title, "LM", names, columns, notes, "results", text=2)


def made_of(models: Sequence[Model]) -> list[Column]:
    """Return columns on the family, the size and the training of models."""
    return [
        Column("family", [model.family for model in models]),
        Column("vocabulary", [str(model.vocabulary or NONE) for model in models]),
        figures("parameters", [model.parameters for model in models], 0),
        figures("epochs", [model.last("epoch") for model in models], 0),
        figures("training tokens", [model.tokens for model in models], 0),
    ]


def reached(models: Sequence[Model], kind: str) -> Iterator[Column]:
    """Perplexities on each set, and unknown words."""
    for name in sets(models):
        yield perplexities(f"{name} {SHORT[kind]}", [model.ppl(name) for model in models])
    for name in sets(models):
        if name != VALID:
            oov = [model.figures.get(name, {}).get("oov") for model in models]
            yield figures("OOV" if name == "test" else f"{name} OOV", oov, 0)


def unequal(models: Sequence[Model]) -> Iterator[str]:
    """Yield a warning where the models do not know the same words of a text: the one that knows
    fewer has less to predict.
    """
    for name in sets(models):
        if (
            len({tree["oov"] for model in models if "oov" in (tree := model.figures.get(name, {}))})
            > 1
        ):
            yield (
                f"Warning: the models differ in the words of {name} that they do not know (OOV), so"
                " their perplexities do not compare."
            )


def perplexities(header: str, values: Sequence[float | None], sign: int = 1) -> Column:
    """Return a column of perplexities, all with the decimals that the lowest wants."""
    return figures(
        header,
        values,
        max((places(value) for value in values if value is not None), default=0),
        sign,
    )


def bench_tables(experiment: LmExperiment) -> Iterator[Table]:
    """Throughput and responsiveness, with the output layer, of what was trained here and of
    published sizes (GCNN Table 4).
    """
    models = experiment.models
    every = (experiment.bench or {"rows": ()})["rows"]
    groups = {
        "Throughput and responsiveness": [row for row in every if row["name"] in models],
        "Throughput and responsiveness of random models": [
            row for row in every if row["name"] not in models
        ],
    }
    for title, rows in groups.items():
        if rows:
            base = next((row for row in rows if row.get("model") == "lstm"), None)
            notes = bench_notes(experiment, rows, base)
            titles = titles_of(experiment)
            names = [titles.get(row["name"], experiment.names.label(row["name"])) for row in rows]
            yield table_of(
                title, "LM", names, bench_columns(experiment, rows, base), notes, "results", text=1
            )


def bench_columns(experiment: LmExperiment, rows: Sequence, base) -> Iterator[Column]:
    """Sizes, then for each of SPEEDS the tokens a second and how many times those of the row `base`
    they are.
    """
    models = experiment.models
    counts = [
        row.get("parameters") or (models[row["name"]].parameters if row["name"] in models else None)
        for row in rows
    ]
    families = experiment.names.style.families
    kinds = [str(row.get("model", NONE)) for row in rows]
    yield Column("family", [families[one].label if one in families else one for one in kinds])
    yield figures("parameters", counts, 0)
    for header, key in (
        ("multiply-adds a token (M)", "flops"),
        ("without the output layer (M)", "flops_hidden"),
    ):
        values = millions(rows, key)
        yield figures(header, values, 1 if min(filter(None, values), default=1) >= 1 else 4)
    for key in SPEEDS:
        rates = [median(row, key) for row in rows]
        yield figures(
            f"{key}, tokens/s",
            rates,
            0 if max(filter(None, rates), default=0) >= 1000 else 1,
            sign=-1,
        )
        if base and (rate := median(base, key)):
            yield Column("x LSTM", [NONE if one is None else f"{one / rate:.3g}" for one in rates])


def titles_of(experiment: LmExperiment) -> dict[str, str]:
    """Printed names of the runs of grids, by the model's name: their labels, which are called after
    the grid where they are values.
    """
    runs = [(grid, label, model) for grid in experiment.grids for label, model in grid.runs.items()]
    return {
        model.name: f"{grid.name} {label}" if label in grid.at else label
        for grid, label, model in runs
    }


def millions(rows: Sequence, key: str) -> list[float | None]:
    """Values in millions, where they are known."""
    return [row[key] / 1e6 if row.get(key) is not None else None for row in rows]


def median(row, key: str) -> float | None:
    """Return the median tokens a second of a row of the bench; None where it has none."""
    return (row.get(key) or {}).get("median")


def bench_notes(experiment: LmExperiment, rows: Sequence, base) -> Iterator[str]:
    """Yield notes on what was measured, and on which machine."""
    bench = experiment.bench
    first, turns = rows[0], [len((row.get("throughput") or {}).get("values", ())) for row in rows]
    batch, length = (bench.get(key, first.get(key, "?")) for key in ("batch", "length"))
    long = bench.get("contiguous", first.get("contiguous_length"))
    sequence = f"; contiguous: one sequence of {long:,} tokens" if isinstance(long, int) else ""
    yield (
        f"Throughput: {batch} sequences of {length} tokens in one batch; responsiveness: one such"
        f" sequence at a time{sequence}. All with the log-probability of every word; medians of"
        f" {max(turns)} turns."
    )
    if base:
        yield f"x LSTM: how many times as fast as {experiment.names.label(base['name'])}."
    facts = "".join(
        f"; {key} {bench[key]}" for key in ("threads", "device", "precision") if key in bench
    )
    yield f"Machine: {bench.get('machine', 'unknown')}{facts}."
    yield TABLE_4


def grid_tables(experiment: LmExperiment) -> Iterator[Table]:
    """Yield one table a grid: what each run reached and took."""
    for grid in experiment.grids:
        models = list(grid.runs.values())
        notes = (
            *(KINDS[kind] for kind in grid.kinds if kind in KINDS),
            *([MILESTONE] if milestone(grid) else []),
            *unequal(models),
            *rules(models),
        )
        yield table_of(
            grid.title,
            grid.x if is_scale(grid) else "run",
            list(grid.runs),
            grid_columns(grid, models),
            notes,
            "grids",
            text=1,
        )


def is_scale(grid: Grid) -> bool:
    """Return whether the labels of all runs are the values at which they stand."""
    return grid.figure == LINE and all(
        label in grid.at and label == f"{grid.at[label]:g}" for label in grid.runs
    )


def grid_columns(grid: Grid, models: Sequence[Model]) -> Iterator[Column]:
    """Yield the columns of a grid; no best run where the kinds of perplexity differ."""
    mixed = len(grid.kinds) > 1
    yield Column("kind", [model.kind if mixed else NONE for model in models])
    if grid.figure == LINE and not is_scale(grid):
        yield figures(
            grid.x, [grid.at.get(label) for label in grid.runs], decimals(grid.at.values())
        )
    if grid.of:
        groups = {label: group for group, label in grid.best.items()}
        yield Column("best on valid of", [groups.get(label, NONE) for label in grid.runs])
    yield figures("parameters", [model.parameters for model in models], 0)
    yield figures("updates", [model.last("step") for model in models], 0)
    epochs = [model.last("epoch") for model in models]
    if len(set(epochs)) > 1:  # of runs that stopped when they had converged
        yield figures("epochs", epochs, 0)
    for name in sets(models):
        header = f"{name} ppl" if mixed else f"{name} {SHORT.get(grid.kinds[0], 'ppl')}"
        yield perplexities(header, [model.ppl(name) for model in models], 0 if mixed else 1)
    if goal := milestone(grid):
        steps = [
            next((step for step, ppl in model.validations if ppl <= goal), None) for model in models
        ]
        yield figures(f"updates to valid {goal:.1f}", steps, 0, 1)
    yield figures("training seconds", [model.last("seconds") for model in models], 0)
    yield figures("training tokens/s", [model.pace for model in models], 0)


def milestone(grid: Grid) -> float | None:
    """Return the perplexity that all drawn learning curves reached, by the weakest."""
    ends = [
        min((ppl for _, ppl in model.validations), default=None)
        for model in grid.drawn.runs.values()
    ]
    curves = grid.figure == CURVES and len(grid.kinds) == 1
    return max(ends) if curves and None not in ends else None


def decimals(values: Iterable[float]) -> int:
    """Return the most decimals that the values have in their shortest form."""
    return max((len(f"{value:g}".partition(".")[2]) for value in values), default=0)


def training_tables(experiment: LmExperiment) -> Iterator[Table]:
    """Yield the table of the training time and the last losses of each model outside grids; n-gram
    models are counted, not trained.
    """
    models = [model for model in experiment.main if model.lines and not model.is_ngram]
    yield from trainings({model.label: model for model in models})


def trainings(named: Mapping[str, Model]) -> Iterator[Table]:
    """Yield the table of the trainings of models, by their printed names, if there are any."""
    models = list(named.values())
    if not models:
        return
    losses = [
        min((line["valid_loss"] for line in model.lines if "valid_loss" in line), default=None)
        for model in models
    ]
    columns = [
        Column("criterion", [str(model.config.get("criterion", "softmax")) for model in models]),
        Column("optimiser", [optimiser(model) for model in models]),
        *(figures(name, [model.last(key) for model in models], 0) for name, key in UPDATES.items()),
        figures("tokens/s", [model.pace for model in models], 0),
        figures("best valid loss", losses, 3),
    ]
    note = (
        "Seconds are those of training steps; losses are nats a prediction and compare only between"
        " models that predict the same things."
    )
    yield table_of("Training", "LM", list(named), columns, (note,), text=2)


UPDATES = {"updates": "step", "epochs": "epoch", "tokens": "tokens", "seconds": "seconds"}


def optimiser(model: Model) -> str:
    """Return the optimiser and its learning rate."""
    optim = model.config.get("optim") or {}
    return f"{optim.get('name', 'adam')}, {optim['lr']:g}" if optim.get("lr") is not None else NONE


LM_TABLES: tuple[Callable[[LmExperiment], Iterator[Table]], ...] = (
    ppl_tables,
    bench_tables,
    grid_tables,
    training_tables,
    stage_tables,
)
