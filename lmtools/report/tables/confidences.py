"""The table of word confidences: posteriors, and what calibration makes of them."""

from collections.abc import Iterator

from lmtools.report.experiment import Experiment
from lmtools.report.table import Column, Table, figures, table_of

FIGURES = {"words": 0, "right %": 1, "NCE": 3, "ECE %": 2, "ROC area": 3}
NOTE = (
    "Words of networks, judged by their alignment with the references; confidences are calibrated"
    " posteriors, or what a ctm says. NCE is normalised cross entropy (NIST): 1 at best, below 0"
    " worse than one number for all words; ECE is the mean distance of confidence and share right,"
    " in ten bins; ROC area is how often a right word has more confidence than a wrong one."
)


def confidence_tables(experiment: Experiment) -> Iterator[Table]:
    """Yield for each set that weights were not tuned on how far confidences can be trusted."""
    lists, value = experiment.lists, experiment.rows.value
    for place in (measured.sample.name for measured in lists.judged):
        words = lists.words_of(place)
        keys = [(kind, name) for name, held in words.items() for kind in held.judged]
        columns = [
            Column("system", [lists.names.label(name) for _, name in keys]),
            Column("of", [kind for kind, _ in keys]),
            *(
                figures(quantity, [value(*key, quantity, place) for key in keys], digits)
                for quantity, digits in FIGURES.items()
            ),
        ]
        if keys:
            yield table_of(f"Confidences of words: {place}", columns, (NOTE,), left=2)
