"""Agreement of similarities of sentence pairs with people's: cosines, Pearson's and Spearman's
correlation, and Williams' test; layer by layer they are what `lmtools sts` writes.

All in float64. People's similarities and the values against them are (N,), a pair each.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from lmtools.base.errors import UserError
from lmtools.base.seal import read_json
from lmtools.evaluate.chance import ALIKE, limit_p, qualify_p
from lmtools.vectors.files import SentenceVectors

FEWEST = 4  # pairs: Fisher's interval and Williams' test divide by n - 3
# a side whose deviation is less than this share of its mean is rounding noise (scipy warns from
# here on)
FLAT = 1e-13
ROUNDING = 1e-24  # 1 - the correlation of two sides that differ by rounding only
SIDES = {
    "gold": "people's similarities",
    "values": "the values",
    "first": "the first system's values",
    "second": "the second's values",
}


class Correlation(NamedTuple):
    """A correlation in [-1, 1] with the ends of its confidence interval."""

    value: float
    low: float
    high: float


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the cosine of each row of `left` (N, D) with that of `right` (N, D): (N,) float64 in
    [-1, 1].

    Equal rows give exactly 1, a zero vector 0 with everything, a row that is not finite NaN.
    """
    assert left.shape == right.shape and left.ndim == 2, (left.shape, right.shape)
    left, right = scale_rows(left), scale_rows(right)
    products = (left * right).sum(axis=1)
    # the root of a square is exact, the product of two roots is not
    norms = np.sqrt((left * left).sum(axis=1) * (right * right).sum(axis=1))
    return np.clip(np.divide(products, norms, out=np.zeros_like(products), where=norms != 0), -1, 1)


def scale_rows(vectors: np.ndarray) -> np.ndarray:
    """Return rows (N, D) in float64 over their largest magnitude; zero rows stay."""
    # sums of one order, whatever the layout: equal rows have to give 1
    vectors = np.asarray(vectors, dtype=np.float64, order="C")
    largest = np.abs(vectors).max(axis=1, initial=0, keepdims=True)
    with np.errstate(invalid="ignore"):  # inf / inf is the NaN that we want
        return vectors / np.where(largest == 0, 1, largest)


def pearson(gold: np.ndarray, values: np.ndarray, level: float = 0.95) -> Correlation:
    """Return Pearson's correlation of `values` with `gold`, with its interval by Fisher's z
    (standard error 1 / sqrt(n - 3)).

    UserError for fewer than four pairs, values that are not finite, and a side that does not vary.
    """
    gold, values = sides(gold=gold, values=values)
    value = float(stats.pearsonr(gold, values).statistic)
    return within(value, 1 / math.sqrt(len(gold) - 3), level)


def spearman(gold: np.ndarray, values: np.ndarray, level: float = 0.95) -> Correlation:
    """Return Spearman's rank correlation (ties share their mean rank), with its interval by
    Fisher's z.

    The standard error is sqrt((1 + r^2 / 2) / (n - 3)): Bonett and Wright 2000, Psychometrika 65.
    UserError as for `pearson`.
    """
    gold, values = sides(gold=gold, values=values)
    value = float(stats.spearmanr(gold, values).statistic)
    return within(value, math.sqrt((1 + value**2 / 2) / (len(gold) - 3)), level)


def within(value: float, deviation: float, level: float) -> Correlation:
    """Return the correlation and its interval, `deviation` being artanh's standard error."""
    assert 0 < level < 1, level
    reach = deviation * float(stats.norm.ppf((1 + level) / 2))
    # a perfect correlation has z = infinity, and itself as both ends
    with np.errstate(divide="ignore"):
        low, high = np.tanh(np.arctanh(value) + np.array([-reach, reach]))
    return Correlation(value, float(low), float(high))


def williams(gold: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    """Return the two-sided p of Williams' test that `first` and `second` correlate equally
    (Pearson) with `gold`, on the same pairs.

    t with n - 3 degrees of freedom: Williams 1959; T2 of Steiger 1980, Psychological Bulletin 87.
    UserError as for `pearson`.
    """
    gold, first, second = map(standardise, sides(gold=gold, first=first, second=second))
    # with r = correlations: (r1 - r2) / 2, (r1 + r2) / 2, 1 - r12 and 1 + r12, none of which loses
    # digits where sides are nearly equal
    less, more = first - second, first + second
    half = gold @ less / 2
    middle = gold @ more / 2
    apart = less @ less / 2
    together = more @ more / 2
    if apart < ROUNDING:
        return 1.0
    # numerator and denominator are divided by 1 + r12, which is 0 for opposite sides: then the
    # middle is 0 too
    share = middle**2 / together if together else 0.0
    determinant = max(0.0, apart * (1 - 2 * share) - 2 * half**2)
    n = len(gold)
    spread = 2 * determinant * (n - 1) / (n - 3) + share * apart**3
    t = 2 * abs(half) * math.sqrt((n - 1) / spread) if spread else math.inf
    return float(2 * stats.t.sf(t, n - 3))


def compare_correlations(
    gold: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[float, str]:
    """Return p of Williams' test, at least the smallest of the exact sign test, and what has to
    stand behind it. The sign of a pair says whose standardised value is nearer to the judgement's;
    the squares of these distances sum to 2 - 2 r.
    """
    ours, one, other = map(standardise, (gold, first, second))
    own = (ours - other) ** 2 - (ours - one) ** 2
    p, sign_p = limit_p(williams(gold, first, second), own, alike=False)
    return p, qualify_p(p, len(own), sign_p, "pair")


def standardise(values: np.ndarray) -> np.ndarray:
    values = values - values.mean()
    return values / np.linalg.norm(values)


def sides(**given: np.ndarray) -> list[np.ndarray]:
    """Return the arrays (N,) in float64; UserError that names the one at fault."""
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in given.items()}
    n = len(next(iter(arrays.values())))
    assert all(values.shape == (n,) for values in arrays.values()), [
        values.shape for values in arrays.values()
    ]
    if n < FEWEST:
        raise UserError(
            f"{n} sentence pairs; a correlation with its interval takes at least {FEWEST}"
        )
    for name, values in arrays.items():
        if not (finite := np.isfinite(values)).all():
            worst = int(finite.argmin())
            raise UserError(
                f"{SIDES[name]}: pair {worst + 1} has {values[worst]}; a correlation takes finite"
                " numbers"
            )
        if np.linalg.norm(values - values.mean()) <= FLAT * abs(values.mean()):
            raise UserError(
                f"{SIDES[name]} are all {values[0]:g}; a constant correlates with nothing, give"
                " pairs that differ"
            )
    return list(arrays.values())


CORRELATIONS = {"pearson": pearson, "spearman": spearman}
REMEDY = "write it again with lmtools sts --out"


def correlate_layers(
    stored: SentenceVectors, places: np.ndarray, gold: np.ndarray | None, source
) -> tuple[list[dict], list[str]]:
    """Return a row a layer: each pair's cosine (`places` (2, N): its vectors) and, with judgements
    `gold` (N,), correlations with intervals; None, with a message, without one. UserError for
    judgements that nothing correlates with.
    """
    rows, messages = [], []
    for index, layer in enumerate(stored.layers):
        values = cosines(stored.vectors[places[0], index], stored.vectors[places[1], index])
        row: dict = {"layer": layer}
        for name, correlation in CORRELATIONS.items() if gold is not None else ():
            try:
                value, *ends = correlation(gold, values)
                row[name] = [value, *(ends if abs(value) < 1 - ALIKE else (None, None))]
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
        f"{name} {100 * r[0]:.2f} [{', '.join(f'{100 * end:.2f}' for end in r[1:] if end) or '-'}]"
        for name in CORRELATIONS
        if (r := row.get(name))
    ]
    return f"layer {row['layer']}: {', '.join(known) or 'no correlation'} ({count:,} pairs)"


def compare_rows(tree: dict, against) -> tuple[float, str]:
    """Return the p of Williams' test of the last layer against that of the other system's file, and
    what has to stand behind it.
    """
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
    return compare_correlations(gold, first, values)
