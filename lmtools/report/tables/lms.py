"""Tables of language models by themselves: perplexities in the shape of Tables 2-4 of the GCNN
paper, grids, training.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lmtools.report.experiment import Experiment
from lmtools.report.page.table import Column, Table, figures, places, table_of
from lmtools.report.parts.grids import LINE, Grid
from lmtools.report.parts.models import NGRAM, VALID, Model, list_rules, sets
from lmtools.report.rows import BENCH
from lmtools.report.tables.query import Query, numbers, text_column
from lmtools.report.tables.rescoring import PSEUDO as PSEUDO_NOTE

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
MILESTONE = (
    "Updates to a valid perplexity: the first validation that reached what the weakest of the drawn"
    " runs came to."
)
TABLE_4 = "The GCNN paper's responsiveness is that of one long sequence (contiguous; Table 4)."
LOSSES = (
    "Seconds are those of training steps; losses are nats a prediction and compare only between"
    " models that predict the same things."
)
WORK = {"multiply-adds a token (M)": "flops", "without the output layer (M)": "flops_hidden"}
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
TOOK = {"training seconds": ("seconds", 0), "training tokens/s": ("tokens a second", 0)}


def query_models(experiment: Experiment, models: Iterable[Model]) -> Query:
    """Return a query of the rows of these models."""
    return Query(experiment.rows, "lm", [model.name for model in models])


def ppl_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the models outside grids: one table for each kind of perplexity (GCNN Tables 2 and 3,
    Subword ELMo Table 1).
    """
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
    """Yield a warning where the models do not know the same words of a text: the one that knows
    fewer has less to predict.
    """
    for name in sets(models):
        trees = (model.figures.get(name, {}) for model in models)
        if len({tree["oov"] for tree in trees if "oov" in tree}) > 1:
            yield (
                f"Warning: the models differ in the words of {name} that they do not know (OOV), so"
                " their perplexities do not compare."
            )


def bench_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield throughput and responsiveness, with the output layer, of what was trained here and of
    published sizes (GCNN Table 4).
    """
    models, bench = experiment.models, experiment.bench or {"rows": ()}
    groups = {"Throughput and responsiveness": True}
    groups["Throughput and responsiveness of random models"] = False
    for title, trained in groups.items():
        if rows := [row for row in bench["rows"] if (row["name"] in models) == trained]:
            base = next((row for row in rows if row.get("model") == "lstm"), None)
            columns = bench_columns(experiment, rows, base)
            notes = bench_notes(experiment, rows, base)
            yield table_of(title, columns, notes, part="results", left=2)


def bench_columns(experiment: Experiment, rows: Sequence, base) -> Iterator[Column]:
    """Yield sizes, then for each of BENCH the tokens a second and how many times those of the row
    `base` they are.
    """
    models, families = experiment.models, experiment.names.style.families
    yield Column("LM", [title_of(experiment, row["name"]) for row in rows])
    kinds = [row.get("model") for row in rows]
    yield text_column("family", [families[k].label if k in families else k for k in kinds])
    sizes = {name: model.parameters for name, model in models.items()}
    yield figures(
        "parameters", [row.get("parameters") or sizes.get(row["name"]) for row in rows], 0
    )
    for header, key in WORK.items():
        values = [row[key] / 1e6 if row.get(key) is not None else None for row in rows]
        yield figures(header, values, 1 if min(filter(None, values), default=1) >= 1 else 4)
    for key in BENCH:
        rates = [median(row, key) for row in rows]
        digits = 0 if max(filter(None, rates), default=0) >= 1000 else 1
        yield figures(f"{key}, tokens/s", rates, digits, sign=-1)
        if base and (rate := median(base, key)):
            yield numbers("x LSTM", [value and value / rate for value in rates], "{:.3g}")


def bench_notes(experiment: Experiment, rows: Sequence, base) -> Iterator[str]:
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


def title_of(experiment: Experiment, name: str) -> str:
    """Return the printed name of a model: of a run of a grid its label, which is called after the
    grid where it is a value.
    """
    titles = {
        model.name: f"{grid.name} {label}" if label in grid.at else label
        for grid in experiment.grids
        for label, model in grid.runs.items()
    }
    return titles.get(name) or experiment.names.label(name)


def median(row: Mapping, key: str) -> float | None:
    """Return the median tokens a second of a row of the bench; None where it has none."""
    return (row.get(key) or {}).get("median")


def grid_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield one table a grid: what each run reached and took."""
    for grid in experiment.grids:
        models = list(grid.runs.values())
        notes = (
            *(KINDS[kind] for kind in grid.kinds if kind in KINDS),
            *([MILESTONE] if grid.milestone else []),
            *list_unequal(models),
            *list_rules(models),
        )
        columns = grid_columns(experiment, grid, models)
        yield table_of(grid.title, columns, notes, part="grids", left=2)


def grid_columns(experiment: Experiment, grid: Grid, models: Sequence[Model]) -> Iterator[Column]:
    """Yield the columns of a grid; no best run where the kinds of perplexity differ."""
    mixed, query = len(grid.kinds) > 1, query_models(experiment, models)
    yield Column(grid.x if grid.is_scale else "run", list(grid.runs))
    yield text_column("kind", [model.kind if mixed else None for model in models])
    if grid.figure == LINE and not grid.is_scale:
        digits = max((len(f"{at:g}".partition(".")[2]) for at in grid.at.values()), default=0)
        yield figures(grid.x, [grid.at.get(label) for label in grid.runs], digits)
    if grid.of:
        groups = {label: group for group, label in grid.best.items()}
        yield text_column("best on valid of", [groups.get(label) for label in grid.runs])
    yield query.column("parameters", "parameters", digits=0)
    yield query.column("updates", "updates", digits=0)
    if len(set(query.values("epochs"))) > 1:  # of runs that stopped when they had converged
        yield query.column("epochs", "epochs", digits=0)
    for name in sets(models):
        header = f"{name} ppl" if mixed else f"{name} {SHORT.get(grid.kinds[0], 'ppl')}"
        yield perplexities(header, models, name, 0 if mixed else 1)
    if goal := grid.milestone:
        reached = [[step for step, ppl in model.validations if ppl <= goal] for model in models]
        steps = [next(iter(steps), None) for steps in reached]
        yield figures(f"updates to valid {goal:.1f}", steps, 0, sign=1)
    yield from query.columns(TOOK)


def training_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the table of the training time and the last losses of each model outside grids; n-gram
    models are counted, not trained.
    """
    models = [
        model for model in experiment.main if model.lines and model.config.get("kind") != NGRAM
    ]
    yield from list_trainings(experiment, {model.label: model for model in models})


def list_trainings(experiment: Experiment, named: Mapping[str, Model]) -> Iterator[Table]:
    """Yield the table of the trainings of models, by their printed names, if there are any."""
    models = list(named.values())
    if models:
        columns = [
            Column("LM", list(named)),
            text_column("criterion", [m.config.get("criterion", "softmax") for m in models]),
            text_column("optimiser", list(map(name_optimiser, models))),
            *query_models(experiment, models).columns(TRAINING),
        ]
        yield table_of("Training", columns, (LOSSES,), left=3)


def name_optimiser(model: Model) -> str | None:
    """Return the optimiser and its learning rate."""
    optim = model.config.get("optim") or {}
    return f"{optim.get('name', 'adam')}, {optim['lr']:g}" if optim.get("lr") is not None else None
