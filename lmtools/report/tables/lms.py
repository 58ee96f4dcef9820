"""Tables of language models by themselves: perplexities in the shape of Tables 2-4 of the GCNN
paper, training.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lmtools.report.experiment import Experiment
from lmtools.report.page.table import Column, Table, figures, places, table_of
from lmtools.report.parts.models import NGRAM, VALID, Model, list_rules, sets
from lmtools.report.tables.query import Query, text_column
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
