"""Cosines of sentence pairs and their correlations with people's judgements, layer by layer: the
rows of what `lmtools sts` writes.
"""

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.seal import read_json
from lmtools.evaluate.similarity import cosines, pearson, spearman, williams
from lmtools.formats.vectors import SentenceVectors

CORRELATIONS = {"pearson": pearson, "spearman": spearman}
REMEDY = "write it again with lmtools sts --out"


def correlate_layers(
    stored: SentenceVectors, places: np.ndarray, gold: np.ndarray | None, source
) -> tuple[list[dict], list[str]]:
    """Return a row a layer: the cosine of each pair and, where there are judgements `gold` (N,),
    each correlation with its interval, None where a layer has none, of which the messages tell.

    `places` (2, N): where the vectors of the pairs from `source` are. UserError for judgements that
    nothing correlates with.
    """
    rows, messages = [], []
    for index, layer in enumerate(stored.layers):
        values = cosines(stored.vectors[places[0], index], stored.vectors[places[1], index])
        row: dict = {"layer": layer}
        for name, correlation in CORRELATIONS.items() if gold is not None else ():
            try:
                row[name] = list(correlation(gold, values))
            except UserError as error:
                if not np.ptp(gold):
                    raise UserError(f"{source}: {error}") from None
                row[name] = None  # this layer has the same vector for all; others may not
                messages.append(f"layer {layer}: {error}")
        rows.append(row | {"cosine": values.tolist()})
    return rows, messages


def describe_row(row: dict, count: int) -> str:
    """Return the printed line of one layer: its correlations, percent, with intervals."""
    known = [
        f"{name} {r[0] * 100:.2f} [{r[1] * 100:.2f}, {r[2] * 100:.2f}]"
        for name in CORRELATIONS
        if (r := row.get(name))
    ]
    return f"layer {row['layer']}: {', '.join(known) or 'no correlation'} ({count:,} pairs)"


def compare_rows(tree: dict, against) -> float:
    """Return the p of Williams' test of the last layer against that of the other system's file."""
    other = read_json(against, REMEDY)
    try:
        same, values = other["sha256"] == tree["sha256"], other["rows"][-1]["cosine"]
    except (ValueError, KeyError, IndexError, TypeError):
        raise UserError(f"{against}: not what lmtools sts --out wrote; {REMEDY}") from None
    if not same or tree["similarity"] is None:
        raise UserError(
            f"{against}: of other pairs than {tree['pairs']}, or of pairs without similarity; give"
            " the same pairs"
        )
    gold, first, values = map(np.array, (tree["similarity"], tree["rows"][-1]["cosine"], values))
    return williams(gold, first, values)
